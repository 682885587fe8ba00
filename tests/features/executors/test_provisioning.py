"""Executors that are started when work waits for them, and stopped when nothing has run on them for a while."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psutil
import pytest
from sqlalchemy import delete

from falcon_assets.compute.spark.provisioned import ProvisionedSpark
from falcon_assets.compute.spark.sessions import stop_sessions
from falcon_assets.features.executors.operations import ListExecutors
from falcon_assets.features.executors.watching import ExecutorWatch
from falcon_assets.history.dagster_internals.tags import RUN_KEY
from falcon_assets.history.tables import EXECUTORS
from falcon_assets.instances.store.executors import known_executors
from falcon_assets.operations.installation import open_installation
from falcon_assets.planning.executor_health import ExecutorRecord, Health
from tests.builders import cluster_yaml, feed_yaml, on, process_yaml
from tests.catalog.definition_files import changed, problems
from tests.processes import free_port
from tests.waiting import wait_until
from tests.world import World, world_of

MINUTE = timedelta(minutes=1)
STARTS_WITHIN = 180
KINDS = {"connect": f"sc://127.0.0.1:{free_port()}", "standalone": f"spark://127.0.0.1:{free_port()}"}


@dataclass(frozen=True)
class ProvisionedWorld(World):
    def watch(self, kind: str, later: timedelta = timedelta()) -> ExecutorWatch:
        return ExecutorWatch(self.store, self.store.cluster(kind), self.settings, lambda: datetime.now(UTC) + later)

    def known(self, kind: str) -> ExecutorRecord:
        with self.ledger.engine.connect() as connection:
            return known_executors(connection, self.store.cluster(kind))["here"]

    def spark(self, kind: str) -> ProvisionedSpark:
        return ProvisionedSpark(self.settings.home, kind, self.store.cluster(kind).executors[0])

    def waiting(self, kind: str, time: str = "00:30") -> set[str]:
        return set(map(str, self.decide(time, f"make-{kind}").decisions[f"make-{kind}", kind].waiting.values()))


def declared() -> str:
    text = ""
    for kind, endpoint in KINDS.items():
        provision = {"kind": kind, "idle": "minutes(10)"}
        executor: dict[str, Any] = {"name": "here", "endpoint": endpoint, "provision": provision, "quota": {"cores": 1}}
        memory = {"spark.executor.memory": "512m", "spark.sql.shuffle.partitions": "1"}
        text += cluster_yaml(kind, executors=[executor], properties=memory) + feed_yaml(f"out-{kind}", on(kind))
        text += process_yaml(f"make-{kind}", None, f"out-{kind}", on(kind), schedule=True)
    return text


world = world_of({"a.yaml": declared(), "a.sql": "SELECT 1 AS n"}, ProvisionedWorld)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, world: ProvisionedWorld) -> Iterator[str]:
    yield request.param
    stop_sessions()
    world.spark(request.param).stop()
    with world.ledger.engine.begin() as connection:
        connection.execute(delete(EXECUTORS))


def starting(name: str = "here") -> str:
    return f"waits for the executor {name}, which is being started"


@pytest.mark.soak
def test_it_is_started_for_what_waits_and_stopped_when_it_is_idle(world: ProvisionedWorld, kind: str) -> None:
    assert world.known(kind).health is Health.STOPPED
    assert world.watch(kind).provision(world.ledger) == []
    assert world.waiting(kind) == {starting()}
    assert world.watch(kind).provision(world.ledger) == [f"executor here of {kind} is started: work waits for it"]
    assert world.watch(kind).provision(world.ledger) == []
    assert (world.known(kind).health, world.waiting(kind)) == (Health.STARTING, {starting()})
    answers(world, kind)
    (run,) = world.decide("00:30", f"make-{kind}").runs
    assert run.launch.executor == "here"
    assert world.execute(run, "00:30", **{RUN_KEY: run.run_key}).success
    assert world.rows(f"make-{kind}")[0]["executor"] == "here"
    assert world.watch(kind).provision(world.ledger) == []
    assert world.watch(kind, 9 * MINUTE).provision(world.ledger) == []
    assert world.watch(kind, 11 * MINUTE).provision(world.ledger) == [
        f"executor here of {kind} is stopped: nothing has run on it for minutes(10)"
    ]
    assert not world.spark(kind).is_running
    assert world.known(kind).health is Health.STOPPED
    with open_installation(world.settings, world.instance) as installation:
        (listed,) = ListExecutors(filters=(("cluster", kind),)).run(installation).items
    assert (listed.health, listed.problem) == (Health.STOPPED, "")


def answers(world: ProvisionedWorld, kind: str) -> None:
    def there() -> bool:
        world.watch(kind, MINUTE).probe_due(world.ledger)
        assert world.spark(kind).is_running, world.spark(kind).log.read_text()
        return world.known(kind).health is Health.ONLINE

    wait_until(there, STARTS_WITHIN, world.spark(kind).log.read_text)


@pytest.mark.soak
def test_one_that_ends_is_started_again_after_a_while(world: ProvisionedWorld, kind: str) -> None:
    world.waiting(kind, "01:30")
    world.watch(kind).provision(world.ledger)
    spark = world.spark(kind)
    for one in spark._servers:
        server = one.running()
        assert server is not None
        with suppress(psutil.NoSuchProcess):
            psutil.Process(server.pid).kill()
    wait_until(lambda: not spark.is_running, 30, "they end")
    said = f"it ended: see {spark.log}"
    assert world.watch(kind).provision(world.ledger) == [f"executor here of {kind} {said.removeprefix('it ')}"]
    assert world.known(kind).problem == said
    assert world.waiting(kind, "01:30") == {f"waits for the executor here, which is offline: {said}"}
    assert world.watch(kind).provision(world.ledger) == []  # not at once
    soon = timedelta(seconds=6)
    assert world.watch(kind, soon).provision(world.ledger) == [f"executor here of {kind} is started: work waits for it"]


@pytest.mark.soak
def test_only_its_user_may_use_it(world: ProvisionedWorld, kind: str) -> None:
    spark = world.spark(kind)
    spark.launch(os.environ)
    token = spark._files.token()
    assert len(token) == 64
    for one in spark._servers:
        server = one.running()
        assert server is not None
        assert token not in " ".join(psutil.Process(server.pid).cmdline())
        assert stat.S_IMODE(one.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(spark._files.folder.stat().st_mode) == 0o700


def test_a_port_that_is_taken_is_a_reason(world: ProvisionedWorld, taken: Callable[[int], None], kind: str) -> None:
    port = int(KINDS[kind].rpartition(":")[2])
    taken(port)
    world.waiting(kind, "02:30")
    (news,) = world.watch(kind).provision(world.ledger)
    assert f"port {port} on 127.0.0.1 cannot be used (Address already in use)" in news
    assert world.known(kind).health is Health.SUSPECT
    assert "cannot be started: port" in next(iter(world.waiting(kind, "02:30")))


@pytest.fixture
def taken() -> Iterator[Callable[[int], None]]:
    held: list[socket.socket] = []

    def take(port: int) -> None:
        one = socket.create_server(("127.0.0.1", port))
        held.append(one)

    yield take
    for one in held:
        one.close()


@pytest.mark.parametrize(
    ("endpoint", "kind"), [("sc://h:15002", "connect"), ("spark://127.0.0.1:7077", "connect"), ("yarn", "standalone")]
)
def test_only_what_is_on_this_machine_can_be_provisioned(tmp_path: Any, endpoint: str, kind: str) -> None:
    old = 'write: {endpoint: data/primary}, execute: {endpoint: "local[2]"}}'
    executor = f"{{name: east, endpoint: '{endpoint}', provision: {{kind: {kind}}}}}"
    files = changed("clusters.yaml", old, f"write: {{endpoint: data/primary}}}}\nexecutors: [{executor}]")
    scheme = {"connect": "sc", "standalone": "spark"}[kind]
    assert problems(tmp_path, files) == [
        f"clusters.yaml:5: executors[0]: provision: kind {kind} starts it on this machine: it needs "
        f"endpoint: {scheme}://127.0.0.1:PORT"
    ]
