"""What collectors record of real folders, and what they leave alone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from sqlalchemy import select

from falcon_assets.features.landing.collector import Collection, Collector
from falcon_assets.history import queries
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable, InstancesLanded
from falcon_assets.history.events.process_instances import InstanceChanged
from falcon_assets.history.events.record import DATA_VERSION_TAG
from falcon_assets.history.tables import FEED_INSTANCES
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.builders import cluster_yaml
from tests.records import has_record, read_record
from tests.world import MakeWorld, World

FEED = """---
kind: feed
name: {name}
frequency: hours(1)
availability_flag: _SUCCESS
late_arrival: {{cut_off: hours(2)}}
locations: {{data: "/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{{name: {cluster}, validity: {{start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}}}}]
"""
PRODUCED = """---
kind: feed
name: produced
frequency: hours(1)
locations: {data: "/produced/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
clusters: [{name: changing, validity: {start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}}]
---
kind: process
name: produce
clusters: [{name: changing, validity: {start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}}]
frequency: hours(1)
inputs: [{name: rows, feed: flights, start: "now(0,0)", end: "now(0,0)"}]
outputs: [{name: out, feed: produced, instance: "now(0,0)"}]
workflow: {engine: spark-sql, path: all.sql}
"""
FEEDS = {
    "changing": ["flights"],
    "refused": ["closed", "open"],
    "busy": ["first", "second", "third"],
    "watched": ["seen"],
}


def entities() -> Iterator[str]:
    for cluster, feeds in FEEDS.items():
        yield cluster_yaml(cluster) + "".join(FEED.format(name=name, cluster=cluster) for name in feeds)
    yield PRODUCED


@dataclass(frozen=True)
class CollectedWorld(World):
    """Clusters with folders, and what is known about them."""

    def collect(self, cluster: str, time: str, budget_seconds: float = 60) -> Collection:
        return Collector(self.store, self.store.cluster(cluster), self.at(time)).collect(self.ledger, budget_seconds)

    def folder(self, cluster: str, feed: str, hour: int) -> Path:
        return self.settings.home / f"data/{cluster}/{feed}/2013-01-01/{hour:02}"

    def land(self, cluster: str, feed: str, hour: int, text: str, *, complete: bool = True) -> None:
        """An hour is there, in place of what was there."""
        folder = self.folder(cluster, feed, hour)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "part.csv").write_text(text)
        if complete:
            (folder / "_SUCCESS").touch()

    def events(self, cluster: str, feed: str) -> list[dg.AssetMaterialization]:
        """All that was ever recorded about a feed, as it came."""
        key = dg.AssetKey([cluster, feed])
        records = self.instance.fetch_materializations(key, limit=100, ascending=True).records
        return [event for record in records if (event := record.asset_materialization)]

    def row(self, feed: str, hour: int) -> dict[str, Any]:
        self.ledger.catch_up()
        table = FEED_INSTANCES.c
        found = select(FEED_INSTANCES).where(
            table.feed == feed, table.instance == parse_instant(f"2013-01-01T{hour:02}:00Z")
        )
        with self.ledger.engine.connect() as connection:
            return dict(connection.execute(found).one()._mapping)

    def recorded(self, cluster: str) -> dict[str, list[str]]:
        """Feed -> the hours that were recorded, as they came."""
        return {
            feed: [(event.partition or "")[11:13] for event in self.events(cluster, feed)] for feed in FEEDS[cluster]
        }

    def collected_at(self, cluster: str) -> dict[str, str]:
        with self.ledger.engine.connect() as connection:
            return {
                feed: format_instant(time)[11:]
                for feed, time in sorted(queries.last_collected(connection, cluster).items())
            }


@pytest.fixture(scope="module")
def world(make_world: MakeWorld) -> CollectedWorld:
    files = {f"{number}.yaml": text for number, text in enumerate(entities())}
    return make_world({**files, "all.sql": "SELECT * FROM rows"}, CollectedWorld)


def test_what_is_complete_is_recorded_once(world: CollectedWorld) -> None:
    world.land("changing", "flights", 0, "a,1\n")
    world.land("changing", "flights", 1, "b,2\n", complete=False)
    world.land("changing", "produced", 0, "of a process")
    assert world.collect("changing", "01:30") == Collection(recorded=1, left=0, problems={})
    (event,) = world.events("changing", "flights")
    assert event.partition == "2013-01-01T00:00Z"
    there = read_record(FeedInstanceAvailable, event)
    assert there.path == str(world.folder("changing", "flights", 0))
    assert (there.instance, there.files, there.bytes) == (parse_instant("2013-01-01T00:00Z"), 1, 4)
    assert there.seen_at == world.at("01:30").now()
    assert not has_record(InstanceChanged, event)
    row = world.row("flights", 0)
    assert row["version"] == there.version == (event.tags or {})[DATA_VERSION_TAG]
    assert (row["signature"], row["files"], row["bytes"]) == (there.signature, 1, 4)
    assert (row["landed_at"], row["seen_at"]) == (world.at("01:30").now(), world.at("01:30").now())
    assert (row["changes"], row["previous_version"], row["run_id"]) == (0, None, None)
    assert world.collect("changing", "01:31") == Collection(recorded=0, left=0, problems={})
    assert world.events("changing", "produced") == []


def test_what_gets_complete_is_recorded_then(world: CollectedWorld) -> None:
    (world.folder("changing", "flights", 1) / "_SUCCESS").touch()
    assert world.collect("changing", "01:40").recorded == 1
    assert world.row("flights", 1)["landed_at"] == world.at("01:40").now()


def test_what_is_not_due_is_not_searched_for(world: CollectedWorld) -> None:
    world.land("changing", "flights", 2, "c,3\n")
    assert world.collect("changing", "01:59").recorded == 0
    assert world.collect("changing", "02:00").recorded == 1


def test_what_is_rewritten_within_the_cut_off_is_a_new_version(world: CollectedWorld) -> None:
    before = world.row("flights", 1)
    world.land("changing", "flights", 1, "b,20\n")
    assert world.collect("changing", "02:50").recorded == 1
    row = world.row("flights", 1)
    assert row["version"] != before["version"]
    assert (row["previous_version"], row["changes"]) == (before["version"], 1)
    assert (row["landed_at"], row["seen_at"]) == (before["landed_at"], world.at("02:50").now())
    assert world.collect("changing", "02:51").recorded == 0


def test_what_is_rewritten_after_the_cut_off_is_not_checked(world: CollectedWorld) -> None:
    before = world.row("flights", 0)
    world.land("changing", "flights", 0, "a,1000\n")
    assert world.collect("changing", "02:52").recorded == 0
    assert world.row("flights", 0) == before


def test_a_cut_off_that_passes_between_two_ticks_is_checked_once_more(world: CollectedWorld) -> None:
    world.land("changing", "flights", 1, "b,200\n")
    assert world.collect("changing", "09:00").recorded == 1
    assert world.row("flights", 1)["changes"] == 2
    world.land("changing", "flights", 1, "b,2000\n")
    assert world.collect("changing", "09:01").recorded == 0


def test_touched_files_with_the_same_content_are_the_same_version(world: CollectedWorld) -> None:
    world.land("changing", "flights", 8, "d,4\n")
    assert world.collect("changing", "09:02").recorded == 1
    before = world.row("flights", 8)
    part = world.folder("changing", "flights", 8) / "part.csv"
    os.utime(part, (part.stat().st_atime, part.stat().st_mtime + 5))
    world.collect("changing", "09:03")
    row = world.row("flights", 8)
    assert (row["version"], row["changes"], row["seen_at"]) == (before["version"], 0, before["seen_at"])
    assert row["signature"] != before["signature"]
    assert world.collect("changing", "09:04").recorded == 0


def test_a_feed_that_cannot_be_checked_is_reported_and_the_others_go_on(world: CollectedWorld) -> None:
    for feed in FEEDS["refused"]:
        world.land("refused", feed, 0, "x\n")
    closed = world.settings.home / "data/refused/closed"
    shutil.rmtree(closed)
    closed.symlink_to(closed)  # even root cannot list it
    found = world.collect("refused", "00:30")
    assert (found.recorded, found.left) == (1, 0)
    problem = (
        f"cluster 'refused': cannot list /closed/2013-01-01: Too many levels of symbolic links ({closed}/2013-01-01)"
    )
    assert found.problems == {"closed": problem}
    assert world.collected_at("refused") == {"open": "00:30Z"}


def test_a_feed_that_cannot_be_checked_leaves_the_next_budget_to_others(world: CollectedWorld) -> None:
    collector = Collector(world.store, world.store.cluster("refused"), world.at("00:31"))
    said = [collector.collect(world.ledger, 0).problems for _ in range(4)]
    assert list(map(list, said)) == [["closed"], [], ["closed"], []]


def test_what_the_budget_leaves_comes_first_the_next_time(world: CollectedWorld) -> None:
    for feed in FEEDS["busy"]:
        world.land("busy", feed, 0, "x\n")
    every = frozenset(FEEDS["busy"])
    assert world.collect("busy", "00:30", 0) == Collection(recorded=1, left=3, problems={}, unread=every)
    assert world.recorded("busy") == {"first": ["00"], "second": [], "third": []}
    # Nothing new there any more: that counts as looked through, and the next one is not begun.
    rest = every - {"first"}
    assert world.collect("busy", "00:31", 0) == Collection(recorded=0, left=2, problems={}, unread=rest)
    assert world.collected_at("busy") == {"first": "00:31Z"}
    assert world.collect("busy", "00:32", 0) == Collection(recorded=1, left=3, problems={}, unread=every)
    assert world.recorded("busy") == {"first": ["00"], "second": ["00"], "third": []}
    assert world.collect("busy", "00:33") == Collection(recorded=1, left=0, problems={})
    assert world.recorded("busy") == {"first": ["00"], "second": ["00"], "third": ["00"]}
    assert world.collected_at("busy") == {"first": "00:33Z", "second": "00:33Z", "third": "00:33Z"}


def test_the_sensor_says_what_landed(world: CollectedWorld) -> None:
    world.land("watched", "seen", 0, "x\n")
    repository = definitions_of(world.store, world.at("00:30")).get_repository_def()
    said = []
    for _ in range(2):
        with dg.build_sensor_context(instance=world.instance, repository_def=repository) as context:
            said.append(repository.get_sensor_def("watched__collector").evaluate_tick(context).skip_message)
    assert said == ["1 instance landed", "0 instances landed"]


def test_the_sensor_fails_with_what_it_could_not_check(world: CollectedWorld) -> None:
    repository = definitions_of(world.store, world.at("00:31")).get_repository_def()
    sensor = repository.get_sensor_def("refused__collector")
    with (
        dg.build_sensor_context(instance=world.instance, repository_def=repository) as context,
        pytest.raises(dg.Failure) as failed,
    ):
        sensor.evaluate_tick(context)
    closed = world.settings.home / "data/refused/closed"
    assert failed.value.description == (
        "closed: cluster 'refused': cannot list /closed/2013-01-01: Too many levels of symbolic links "
        f"({closed}/2013-01-01)"
    )


def test_the_ledger_is_what_a_rebuild_makes_of_history(world: CollectedWorld) -> None:
    def everything() -> list[Any]:
        with world.ledger.engine.connect() as connection:
            return list(connection.execute(select(FEED_INSTANCES).order_by(*FEED_INSTANCES.primary_key.columns)))

    world.ledger.catch_up()
    before = everything()
    assert len(before) == 9
    world.ledger.rebuild()
    assert everything() == before


def test_what_a_tick_found_is_the_latest_event_of_the_asset(world: CollectedWorld) -> None:
    (cluster, feeds) = next(iter(FEEDS.items()))
    feed = next(iter(feeds))
    key = dg.AssetKey([cluster, feed])
    before = len(world.instance.fetch_observations(key, limit=100).records)
    for hour, text in ((6, "latest 6"), (7, "latest 7")):
        world.land(cluster, feed, hour, text)
    world.collect(cluster, "07:30")
    world.collect(cluster, "07:40")
    observed = [one.asset_observation for one in world.instance.fetch_observations(key, limit=100).records]
    assert len(observed) == before + 1
    assert observed[0] is not None and observed[0].partition is None
    assert observed[0].description == f"{feed}: 2 instances landed, 2013-01-01T06:00Z to 2013-01-01T07:00Z"
    assert read_record(InstancesLanded, observed[0]).landed == 2
