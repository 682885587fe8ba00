"""Executors are asked, listed, counted, and their receivers are told when their health changes."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete, select

from falcon_assets.features.executors.listing import metrics_of
from falcon_assets.features.executors.operations import ListExecutors
from falcon_assets.features.executors.watching import ExecutorWatch, changed
from falcon_assets.history.tables import EXECUTORS, NOTIFICATIONS
from falcon_assets.instances.outbox.recording import EventRecording
from falcon_assets.instances.store.executors import known_executors
from falcon_assets.operations.installation import open_installation
from falcon_assets.planning.executor_health import Health
from tests.builders import cluster_yaml, feed_yaml, on, process_yaml
from tests.processes import free_port
from tests.world import World, world_of

PORT = free_port()
EAST = f"spark://127.0.0.1:{PORT}"
NOTIFICATION = {"to": [{"url": {"env": "ON_CALL"}}]}


@dataclass(frozen=True)
class WatchedWorld(World):
    def probe(self, after: timedelta = timedelta()) -> list[str]:
        """What a pass of the sensor finds news, so much later."""
        now = datetime.now(UTC) + after
        watch = ExecutorWatch(self.store, self.store.cluster("primary"), self.settings, lambda: now)
        return changed(watch.probe_due(self.ledger))

    def known(self) -> dict[str, Health]:
        with self.ledger.engine.connect() as connection:
            found = known_executors(connection, self.store.cluster("primary"))
        return {name: one.health for name, one in found.items()}

    def told(self) -> list[tuple[str, ...]]:
        """The notices that are recorded, oldest first."""
        recording = EventRecording(self.store, self.settings)
        recording.record(self.ledger, datetime.now(UTC))
        with self.ledger.engine.connect() as connection:
            rows = connection.execute(select(NOTIFICATIONS).order_by(NOTIFICATIONS.c.id))
            return [(row.receiver, row.event, row.kind, row.entity, row.cluster, row.reason) for row in rows]


DECLARED = (
    cluster_yaml(
        executors=[
            {"name": "east", "endpoint": EAST, "quota": {"cores": 4}, "location": "rack 1"},
            {"name": "west", "endpoint": "local[2]", "capabilities": [["file", "file"]]},
        ],
        notification=NOTIFICATION,
    )
    + cluster_yaml("backup")
    + feed_yaml("out", on("primary"))
    + process_yaml("make", None, "out", schedule=True)
)
world = world_of({"a.yaml": DECLARED, "a.sql": "SELECT 1"}, WatchedWorld)


@pytest.fixture(autouse=True)
def _nothing_known(world: WatchedWorld) -> Iterator[None]:
    with world.ledger.engine.begin() as connection:
        connection.execute(delete(EXECUTORS))
        connection.execute(delete(NOTIFICATIONS))
    yield


@contextmanager
def listening() -> Iterator[None]:
    """A master, as far as a connection shows it."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", PORT))
        server.listen()
        yield


def test_one_that_is_away_is_asked_again_and_again_and_its_receivers_are_told_twice(world: WatchedWorld) -> None:
    silent = f"no Spark master answers at {EAST} (127.0.0.1:{PORT}: Connection refused)"
    assert world.probe() == [f"executor east of primary is SUSPECT: {silent}"]
    assert world.known() == {"east": Health.SUSPECT, "west": Health.ONLINE}
    assert world.told() == []
    assert world.probe() == []  # nothing is due
    assert world.probe(timedelta(seconds=5)) == [f"executor east of primary is OFFLINE: {silent}"]
    offline = ("ON_CALL", "EXECUTOR_OFFLINE", "executor", "east", "primary", silent)
    assert world.told() == world.told() == [offline]
    with listening():
        assert world.probe(timedelta(seconds=30)) == ["executor east of primary is ONLINE"]
    assert world.told() == [offline, ("ON_CALL", "EXECUTOR_ONLINE", "executor", "east", "primary", "")]


def test_those_that_always_answered_are_no_news(world: WatchedWorld) -> None:
    with listening():
        assert world.probe() == []
    assert world.known() == {"east": Health.ONLINE, "west": Health.ONLINE}
    assert world.told() == []


def test_what_is_listed_and_measured(world: WatchedWorld) -> None:
    world.probe()
    with open_installation(world.settings, world.instance) as installation:
        page = ListExecutors().run(installation)
        offline = ListExecutors(filters=(("health", "suspect"),)).run(installation)
    east, west, only = [one.as_data() for one in page.items]
    assert [(one["cluster"], one["executor"], one["health"]) for one in (east, west, only)] == [
        ("primary", "east", "SUSPECT"),
        ("primary", "west", "ONLINE"),
        ("backup", "default", "UNKNOWN"),
    ]
    assert (east["endpoint"], east["location"], west["location"]) == (EAST, "rack 1", "default")
    assert (east["jobs"], east["most_jobs"], east["cores"], east["most_cores"]) == (0, None, 0, 4)
    assert (west["capabilities"], ["file", "file"] in east["capabilities"]) == ([["file", "file"]], True)
    assert only["probed"] is None
    assert [one.executor for one in offline.items] == ["east"]
    with world.ledger.engine.connect() as connection:
        values = metrics_of(connection, world.store)
    assert values["falcon_executor_up"] == {("primary", "east"): False, ("primary", "west"): True}
    assert values["falcon_executor_jobs"] == {("primary", "east"): 0, ("primary", "west"): 0}
    assert values["falcon_executor_free_cores"] == {}


def test_jobs_and_cores_are_those_of_runs(world: WatchedWorld) -> None:
    (run,) = world.decide("00:30", "make").runs
    with open_installation(world.settings, world.instance) as installation:
        (found,) = ListExecutors(filters=(("executor", run.launch.executor),)).run(installation).items
    assert (found.jobs, found.cores) == (1, 4)


def test_what_is_not_declared_any_more_is_forgotten(world: WatchedWorld) -> None:
    world.probe()
    cluster = world.store.cluster("primary")
    (one,) = [found for found in cluster.executors if found.name == "west"]
    fewer = cluster.model_copy(update={"executors": (one,)})
    ExecutorWatch(world.store, fewer, world.settings).probe_due(world.ledger)
    with world.ledger.engine.connect() as connection:
        assert list(connection.execute(select(EXECUTORS.c.name)).scalars()) == ["west"]
