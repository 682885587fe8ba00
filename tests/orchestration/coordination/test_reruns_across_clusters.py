"""What reads, two replications away, what a late rerun will change waits until all of the cascade has run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import pytest

from falcon_assets.history.events.event_log import Fact, Logged
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.history.events.inputs import Consumption
from falcon_assets.history.events.process_instances import InstanceChanged
from falcon_assets.history.folding.fold import fold
from falcon_assets.planning.instance_record import InstanceState, LateChange
from tests.builders import cluster_yaml
from tests.hours import hour
from tests.ledger.histories import history_of
from tests.orchestration.replication_world import feed, on
from tests.world import MakeWorld, World

CLUSTERS = "".join(map(cluster_yaml, ("east", "west", "far")))
PROCESS = """---
kind: process
name: {name}
clusters: [{{name: {cluster}, validity: {{start: 2013-01-01T{start}:00Z, end: 2013-01-01T03:00Z}}}}]
frequency: hours(1)
parallel: 2
inputs: [{{name: rows, feed: {read}, start: "now({first},0)", end: "now(0,0)"}}]
outputs: [{{name: out, feed: {made}, instance: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: sum.sql}}
late_process: {{policy: backoff, delay: hours(1), inputs: [{{input: rows}}]}}
schedule: true
"""
ENTITIES = "".join(
    [
        CLUSTERS,
        feed("raw", on("east", "source")),
        feed("clean", on("east", "source"), on("west", "target")),
        feed("totals", on("west", "source"), on("far", "target")),
        feed("report", on("far", "source")),
        PROCESS.format(name="cleans", cluster="east", start="01", read="raw", first=0, made="clean"),
        PROCESS.format(name="sums", cluster="west", start="01", read="clean", first=0, made="totals"),
        PROCESS.format(name="reports", cluster="far", start="02", read="totals", first=-1, made="report"),
    ]
)
CASCADE = [
    ("cleans", "east", "rows", "raw", "east", "clean"),
    ("clean from east", "west", "source", "clean", "east", "clean"),
    ("sums", "west", "rows", "clean", "west", "totals"),
    ("totals from west", "far", "source", "totals", "west", "totals"),
]
"""Process, its cluster, its input, the feed and cluster that it reads, the feed that it makes."""


@dataclass(frozen=True)
class CascadeWorld(World):
    """Rows that are cleaned on east, summed on west, and reported on far: by the last two hours."""

    events: Iterator[int] = field(default_factory=lambda: count(1))

    def fold(self, *facts: Fact, run_id: str | None = None) -> None:
        fold(self.ledger.engine, history_of([Logged(next(self.events), fact, run_id) for fact in facts]))

    def lands(self, number: int, version: str, at: int) -> None:
        self.fold(FeedInstanceAvailable("east", "raw", hour(number), version, hour(at)))

    def runs(self, step: int, number: int, version: str) -> None:
        """A run of the cascade's step, which reads and makes that version."""
        process, cluster, name, read, there, made = CASCADE[step]
        nominal, inputs = hour(number), {name: (Consumption(read, hour(number), version, there),)}
        late = (LateChange(name, read, nominal, "v1", version),) if version != "v1" else ()
        self.fold(
            InstanceChanged(process, cluster, nominal, InstanceState.SUCCEEDED, hour(2), inputs=inputs),
            FeedInstanceAvailable(cluster, made, nominal, version, hour(2), process=process, late=late),
            run_id=f"{process} {number} {version}",
        )

    def ask(self) -> list[tuple[str, str]]:
        """What the late-arrival sensors ask to run again."""
        late = self.late("02:30")
        return [key[:2] for key in late.requested]

    def waiting(self) -> str:
        """What the report of the last two hours waits for."""
        return str(self.decide("02:30").decisions["reports", "far"].waiting.get(hour(2)))


@pytest.fixture
def world(make_world: MakeWorld) -> CascadeWorld:
    return make_world({"all.yaml": ENTITIES, "sum.sql": "SELECT sum(n) AS n FROM rows"}, CascadeWorld)


def test_a_reader_waits_for_a_rerun_two_clusters_away(world: CascadeWorld) -> None:
    for number in (1, 2):
        world.lands(number, "v1", number)
    for step in range(4):
        world.runs(step, 1, "v1")
    assert world.waiting() == "waits for rows: totals 2013-01-01T02:00Z"
    world.lands(1, "v2", 1)
    assert world.ask() == [("cleans", "east")]
    for step in range(4):
        world.runs(step, 2, "v1")
    said = "waits for the rerun of totals from west 2013-01-01T01:00Z"
    for step in range(4):
        # Of each of the cascade: before anybody has asked for it, and while it is asked for.
        assert world.waiting() == said
        assert world.ask() == ([CASCADE[step][:2]] if step else [])
        assert world.waiting() == said
        world.runs(step, 1, "v2")
    assert [run.run_key for run in world.decide("02:30").runs] == ["reports on far, 2013-01-01T02:00Z, attempt 1"]
