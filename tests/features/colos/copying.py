"""A feed that one colo gets and another copies, over the network of a test, while either of them fails."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow.dataset as ds
import requests
import yaml

from tests.builders import cluster_yaml
from tests.features.colos.installations import Network
from tests.s3_server import KEY, SECRET, lake
from tests.waiting import wait_until

HOURS = 8
LANDS = """
import sys, pyarrow as pa, pyarrow.parquet as pq, s3fs
url, key, secret, folder, number = sys.argv[1:]
fs = s3fs.S3FileSystem(key=key, secret=secret, client_kwargs={"endpoint_url": url})
if not fs.exists("lake"):
    fs.mkdir("lake")
with fs.open(f"lake/data/{folder}/part.parquet", "wb") as file:
    pq.write_table(pa.table({"n": pa.array([int(number)], pa.int64())}), file)
fs.pipe(f"lake/data/{folder}/_SUCCESS", b"")
"""
FEED = """
kind: feed
name: copied
frequency: hours(1)
availability_flag: _SUCCESS
format: parquet
schema: "n long"
late_arrival: {cut_off: days(2)}
properties: {timeout: days(2)}
"""


@dataclass
class Copying:
    """The feed ``copied`` of the first colo, and the copies in the second.

    Attributes:
        begin: Of the first instance, which is past, as all are.
        landed: How many have landed.
    """

    network: Network
    source: str
    target: str
    begin: datetime
    landed: int = 0

    @classmethod
    def started(cls, network: Network) -> Copying:
        source, target = [*network.colos][:2]
        hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
        made = cls(network, source, target, hour - timedelta(hours=HOURS))
        made.land()
        asked = {"definitions": made.definitions(), "reason": "copied"}
        answer = network.ask("POST", "/entities:apply", json=asked)
        assert answer.status_code in (requests.codes.ok, requests.codes.multi_status), answer.text
        return made

    def definitions(self) -> str:
        span = {
            "start": f"{self.begin:%Y-%m-%dT%H:%MZ}",
            "end": f"{self.begin + timedelta(hours=HOURS):%Y-%m-%dT%H:%MZ}",
        }
        clusters = [
            {"name": "lake", "type": "source", "validity": span},
            {"name": f"{self.target}-disk", "type": "target", "validity": {**span}},
        ]
        place = {"data": "/copied/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
        feed = {**yaml.safe_load(FEED), "locations": place, "clusters": clusters, "schedule": True}
        return cluster_yaml(**lake(self.network.store), colo=self.source) + "---\n" + yaml.safe_dump(feed)

    def land(self) -> None:
        """The next instance, from within its colo, whether anybody else reaches that or not."""
        folder = f"copied/{self.begin + timedelta(hours=self.landed):%Y-%m-%d-%H}"
        given = [self.network.store, KEY, SECRET, folder, str(self.landed)]
        command = [*self.network.colos[self.source].machine.inside, sys.executable, "-c", LANDS, *given]
        subprocess.run(command, check=True, env=dict(os.environ))
        self.landed += 1

    def copies(self) -> list[int]:
        """What complete copies have, in the order of their times."""
        root = self.network.colos[self.target].folder / "home" / "data" / f"{self.target}-disk" / "copied"
        folders = sorted(one.parent for one in root.glob("*/_SUCCESS"))
        return [n for one in folders for n in ds.dataset(one, format="parquet").to_table()["n"].to_pylist()]

    def wait(self, seconds: float) -> None:
        """Until all that has landed is copied, each once."""
        wanted = list(range(self.landed))
        wait_until(lambda: self.copies() == wanted, seconds, lambda: f"{self.copies()}\n{self.network.logs()}")
        query = "SELECT instance, count(*) FROM falcon.data_versions WHERE cluster = %r AND feed = 'copied' GROUP BY 1"
        target = self.network.colos[self.target]
        wait_until(lambda: len(target.rows(query % f"{self.target}-disk")) == self.landed, 600, "their records")
        assert {number for _, number in target.rows(query % f"{self.target}-disk")} == {1}, "nothing is copied twice"
