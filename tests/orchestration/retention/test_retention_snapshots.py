"""A snapshot of the ledger, and of what is staged, is enough to plan retention for many feeds of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import event

from falcon_assets.features.retention.passes import PassResult, RetentionPass
from falcon_assets.features.retention.plan import FeedPlan, RetentionSnapshot, plan_retention
from falcon_assets.history.events.event_log import materialization
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.staging import unfinished_folder
from tests.builders import cluster_yaml
from tests.hours import hour
from tests.orchestration.replication_world import ReplicationWorld, feed, on
from tests.world import MakeWorld

CLUSTERS = "".join(map(cluster_yaml, ("east", "west", "backup")))
LIMIT = ", retention: {limit: hours(7)}"
LIMIT_AND_AGE = ", retention: {limit: hours(7), minimum_age: hours(1)}"
READER = """---
kind: feed
name: of-%s
frequency: hours(1)
locations: {data: "/of-%s/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
clusters: [{name: east, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T08:00Z}}]
---
kind: process
name: reads-%s
schedule: true
clusters: [{name: east, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T08:00Z}}]
frequency: hours(1)
timeout: days(9)
inputs:
  - {name: rows, feed: %s, start: "%s", end: "%s"}
outputs: [{name: out, feed: of-%s, instance: "now(0,0)"}]
late_process: {policy: final, inputs: [{input: rows}]}
workflow: {engine: spark-sql, path: all.sql}
"""
NAMES = [f"feed-{number}" for number in range(6)]
"""The instances of each are replicated from east to the others, and read on east; by latest(0) where it is even."""


def entities() -> Iterator[str]:
    yield CLUSTERS
    for number, name in enumerate(NAMES):
        yield feed(
            name, on("east", "source", more=LIMIT), *(on(one, "target", more=LIMIT) for one in ("west", "backup"))
        )
        time = "now(0,0)" if number % 2 else "latest(0)"
        yield READER % (name, name, name, name, time, time, name)


@dataclass(frozen=True)
class PlannedWorld(ReplicationWorld):
    """Feeds of eight hours."""

    def snapshot(self, cluster: str, feeds: Sequence[str]) -> RetentionSnapshot:
        with self.ledger.engine.connect() as connection:
            declared = [self.store.feed(name) for name in feeds]
            return RetentionSnapshot(connection, self.store, self.stores(cluster), declared, hour(10))

    def plans(self, cluster: str, feeds: Sequence[str]) -> list[FeedPlan]:
        with self.ledger.engine.connect() as connection:
            declared = [self.store.feed(name) for name in feeds]
            return list(plan_retention(connection, self.store, self.stores(cluster), declared, hour(10)))

    @contextmanager
    def statements(self) -> Iterator[list[str]]:
        found = list[str]()

        def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
            found.append(statement)

        event.listen(self.ledger.engine, "before_cursor_execute", note)
        try:
            yield found
        finally:
            event.remove(self.ledger.engine, "before_cursor_execute", note)

    def begin_copy(self, feed: str, number: int) -> None:
        """As a copy that is killed at once."""
        files = ClusterStore(self.store.cluster("backup"), self.settings.home, {})
        kind_of(files).copy_target(OutputTarget(f"/{feed}/2013-01-01-{number:02}", None), "east").begin()


@pytest.fixture(scope="module")
def world(instance: dg.DagsterInstance, make_world: MakeWorld) -> PlannedWorld:
    made = make_world({"all.yaml": "".join(entities()), "all.sql": "SELECT 1"}, PlannedWorld)
    for name in NAMES:
        for number in range(8):
            made.land("east", name, number, a=number)
    for name in NAMES[:2]:
        for number in (0, 1):
            made.land("backup", name, number, a=number)
            key, said = dg.AssetKey(["backup", name]), f"2013-01-01T0{number}:00Z"
            there = FeedInstanceAvailable("backup", name, hour(number), "v1", hour(number))
            instance.report_runless_asset_event(materialization(key, said, there))
        made.begin_copy(name, 2)
    made.collect("07:00")
    made.ledger.catch_up()
    return made


@pytest.mark.parametrize("cluster", ["east", "backup"])
def test_the_number_of_statements_does_not_grow_with_the_feeds(world: PlannedWorld, cluster: str) -> None:
    with world.statements() as for_two:
        two = world.plans(cluster, NAMES[:2])
    with world.statements() as for_all:
        every = world.plans(cluster, NAMES)
    assert [one.problem for one in every] == [""] * len(NAMES)
    assert every[:2] == two
    assert len(for_all) == len(for_two)
    assert every == [plan for name in NAMES for plan in world.plans(cluster, [name])]


def test_a_snapshot_reads_once_what_is_staged_and_planning_asks_the_ledger_nothing(world: PlannedWorld) -> None:
    snapshot = world.snapshot("backup", NAMES)
    marks = Path(unfinished_folder(ClusterStore(world.store.cluster("backup"), world.settings.home, {})))
    marks.rename(marks.with_name("hidden"))
    with world.statements() as asked:
        plans = [snapshot.plan(world.store.feed(name)) for name in NAMES]
    marks.with_name("hidden").rename(marks)
    assert asked == []
    reasons = {plan.feed.name: [copy.verdict.reason for copy in plan.copies] for plan in plans}
    waits = "process {0} from east 2013-01-01T02:00Z needs it: it has yet to run"
    assert reasons == {name: [waits.format(name)] if name in NAMES[:2] else [] for name in NAMES}


def test_what_is_staged_cannot_be_listed(world: PlannedWorld) -> None:
    marks = Path(unfinished_folder(ClusterStore(world.store.cluster("backup"), world.settings.home, {})))
    marks.rename(marks.with_name("hidden"))
    marks.symlink_to(marks)
    plans = world.plans("backup", NAMES)
    marks.unlink()
    marks.with_name("hidden").rename(marks)
    problem = f"cluster 'backup': cannot list what is staged: Too many levels of symbolic links ({marks})"
    assert [plan.problem for plan in plans] == [problem] * len(NAMES)


def test_a_pass_over_many_feeds(world: PlannedWorld) -> None:
    """Nothing of what west has yet to copy goes, and nothing of what is read."""
    feeds = [world.store.feed(name) for name in NAMES]

    def evicted(cluster: str, time: str) -> PassResult:
        here = RetentionPass(world.store, world.store.cluster(cluster), feeds, world.at(time), 0)
        return here.run(
            world.ledger, "run", lambda events: list(map(world.instance.report_runless_asset_event, events))
        )

    assert evicted("east", "10:00") == PassResult(0, 0, ())
    assert evicted("backup", "10:00") == PassResult(4, 4 * len('{"n": 0}\n'), ())
    assert [world.files("backup", name, 1) for name in NAMES] == [None] * len(NAMES)
    assert [world.files("east", name, 0) for name in NAMES] == [{"a.json": 0}] * len(NAMES)
