"""What lands late in the past, months after its time, is found and recorded like anything else."""

from __future__ import annotations

import shutil

import dagster as dg
import pytest

from falcon_assets.features.landing.collector import Collection
from falcon_assets.features.landing.store import passes
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.model.instant import parse_instant
from falcon_assets.surface.dagster.code_location import definitions_of
from falcon_assets.surface.foreground.foreground import Foreground, ForegroundResult
from falcon_assets.surface.foreground.foreground_runs import Display
from tests.builders import cluster_yaml
from tests.orchestration.old_world import FEED, OldWorld, hours
from tests.records import read_record
from tests.world import MakeWorld, said

FEEDS = {
    "late": ["landing"],
    "flags": ["flagged"],
    "busy": ["first", "second", "third"],
    "large": ["wide"],
    "unmounted": ["shared"],
    "loops": ["closed", "open"],
    "ticking": ["ticked"],
    "waited": ["asked", "other"],
}

WAITING = """---
kind: feed
name: sums
frequency: hours(1)
locations: {data: "/sums/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
clusters: [{name: waited, validity: {start: 2012-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
---
kind: process
name: wait
clusters: [{name: waited, validity: {start: 2012-05-01T00:00Z, end: 2012-05-02T00:00Z}}]
frequency: hours(1)
inputs:
  - {name: asked, feed: asked, start: "now(0,0)", end: "now(0,0)"}
  - {name: other, feed: other, start: "now(0,0)", end: "now(0,0)"}
outputs: [{name: out, feed: sums, instance: "now(0,0)"}]
workflow: {engine: spark-sql, path: all.sql}
schedule: true
"""


@pytest.fixture(scope="module")
def world(make_world: MakeWorld) -> OldWorld:
    files = {
        f"{cluster}.yaml": cluster_yaml(cluster) + "".join(FEED.format(name=name, cluster=cluster) for name in feeds)
        for cluster, feeds in FEEDS.items()
    }
    files["waited.yaml"] += WAITING
    return make_world({**files, "all.sql": "SELECT * FROM asked"}, OldWorld)


def test_what_lands_in_the_past_after_the_first_tick_is_recorded_in_full(world: OldWorld) -> None:
    world.land("late", "landing", "2012-03-01T00")
    assert world.tick("late").recorded == 1
    assert world.go_on("late").recorded == 0
    world.land("late", "landing", "2012-03-01T01", "2012-07-04T12")
    assert world.tick("late").recorded == 0  # that looks at the young ones only
    assert world.go_on("late").recorded == 2
    assert world.recorded("late", "landing") == ["2012-03-01T00", "2012-03-01T01", "2012-07-04T12"]
    first, _, last = (read_record(FeedInstanceAvailable, event) for event in world.events("late", "landing"))
    assert first.looked_before is None
    assert last.looked_before is not None
    assert (last.files, last.bytes) == (1, 4)
    assert world.go_on("late").recorded == 0
    assert len(world.known("landing")) == 3


def test_a_flag_that_comes_late_is_seen_although_its_folder_is_unchanged(world: OldWorld) -> None:
    world.tick("flags")
    assert world.go_on("flags").recorded == 0
    world.land("flags", "flagged", "2012-03-01T00", "2012-03-01T01", complete=False)
    assert world.go_on("flags").recorded == 0
    assert world.incomplete("flagged") == ["2012-03-01T00", "2012-03-01T01"]
    (world.folder("flags", "flagged", "2012-03-01T00") / "_SUCCESS").touch()
    assert world.go_on("flags").recorded == 1
    assert world.incomplete("flagged") == ["2012-03-01T01"]
    shutil.rmtree(world.folder("flags", "flagged", "2012-03-01T01"))
    assert world.go_on("flags").recorded == 0
    assert world.incomplete("flagged") == []


def test_a_young_one_that_grows_old_without_its_flag_is_watched_on(world: OldWorld) -> None:
    world.land("flags", "flagged", "2012-12-31T20", complete=False)
    assert world.tick("flags", "00:30").recorded == 0
    assert world.incomplete("flagged") == ["2012-12-31T20"]
    assert world.tick("flags", "23:30").recorded == 0  # too old by now
    (world.folder("flags", "flagged", "2012-12-31T20") / "_SUCCESS").touch()
    assert world.tick("flags", "23:31").recorded == 0
    world.passing["flags"].collector = world.collector("flags", "23:31")
    assert world.go_on("flags").recorded == 1
    assert world.incomplete("flagged") == []


def test_feeds_take_turns_and_a_pass_goes_on_where_it_was(world: OldWorld) -> None:
    world.tick("busy")
    for feed in FEEDS["busy"]:
        world.land("busy", feed, *(f"2012-03-{day:02}T00" for day in range(1, 11)))
    found = [world.go_on("busy", requests=4).recorded for _ in range(12)]
    assert found[:9] == [3] * 9  # the folder above and three days
    assert sum(found) == 30
    for feed in FEEDS["busy"]:
        assert world.recorded("busy", feed) == [f"2012-03-{day:02}T00" for day in range(1, 11)]


def test_another_process_goes_on_where_one_was_stopped(world: OldWorld) -> None:
    for feed in FEEDS["busy"]:
        world.land("busy", feed, *(f"2012-05-{day:02}T00" for day in range(1, 11)))
    world.passing.clear()
    for _ in range(40):
        world.passing.clear()
        world.go_on("busy", requests=4)
    assert {len(world.known(feed)) for feed in FEEDS["busy"]} == {20}


def test_many_at_once_are_recorded_little_by_little(world: OldWorld) -> None:
    world.tick("large")
    world.land("large", "wide", *(hour[:13] for hour in hours("2012-03-01T00:00Z", 24)))
    assert world.go_on("large", seconds=0).recorded == 1  # one at least, or it would never come to an end
    for _ in range(40):
        world.go_on("large", seconds=0)
    assert world.recorded("large", "wide") == [hour[:13] for hour in hours("2012-03-01T00:00Z", 24)]


def test_what_landed_while_a_disk_was_not_mounted_is_found_when_it_is_back(world: OldWorld) -> None:
    world.tick("unmounted")
    world.land("unmounted", "shared", "2012-03-01T00")
    assert world.go_on("unmounted").recorded == 1
    root, elsewhere = (world.settings.home / f"data/{name}" for name in ("unmounted", "elsewhere"))
    root.rename(elsewhere)
    assert world.go_on("unmounted") == Collection(0, 0, {})
    elsewhere.rename(root)
    world.land("unmounted", "shared", "2012-03-01T01", "2012-04-01T00")
    with world.ledger.engine.connect() as connection:
        # Nobody knows how long it was away: the next pass lists what says that it has not changed, too.
        assert passes(connection, "unmounted")["shared"].all_before is None
    assert world.go_on("unmounted").recorded == 2


def test_a_disk_that_is_not_mounted_is_said(world: OldWorld) -> None:
    world.land("unmounted", "shared", "2012-12-31T20")
    assert world.tick("unmounted").recorded == 1
    root, elsewhere = (world.settings.home / f"data/{name}" for name in ("unmounted", "elsewhere"))
    root.rename(elsewhere)
    problems = world.tick("unmounted").problems
    assert set(problems) == {"shared"}
    # How it is said depends on whether the root was there long enough to be marked.
    assert problems["shared"].startswith("cluster 'unmounted': ")
    assert str(root) in problems["shared"] and "mounted?" in problems["shared"]
    elsewhere.rename(root)
    assert world.tick("unmounted") == Collection(0, 0, {})


def test_a_folder_that_cannot_be_listed_is_said_and_the_others_go_on(world: OldWorld) -> None:
    world.tick("loops")
    for feed in FEEDS["loops"]:
        world.land("loops", feed, "2012-03-01T00", "2012-03-02T00", "2012-03-03T00")
    bad = world.folder("loops", "closed", "2012-03-02T00").parent
    shutil.rmtree(bad)
    bad.symlink_to(bad)
    found = world.go_on("loops")
    assert found.recorded == 5
    assert list(found.problems) == ["closed"]
    assert "cannot list /closed/2012-03-02: Too many levels of symbolic links" in found.problems["closed"]


def test_the_sensor_finds_it_too(world: OldWorld) -> None:
    world.land("ticking", "ticked", "2012-12-31T23")
    repository = definitions_of(world.store, world.at("00:30")).get_repository_def()

    def tick() -> str | None:
        with dg.build_sensor_context(instance=world.instance, repository_def=repository) as context:
            return repository.get_sensor_def("ticking__collector").evaluate_tick(context).skip_message

    world.land("ticking", "ticked", "2012-12-31T22")
    assert tick() == "2 instances landed"
    world.land("ticking", "ticked", "2012-02-01T00")
    assert tick() == "0 instances landed"  # the next pass begins in a minute
    world.go_on("late")
    assert tick() == "1 instance landed"
    assert tick() == "0 instances landed"


def test_what_is_waited_for_is_searched_for_at_once_however_old_it_is(world: OldWorld) -> None:
    world.tick("waited")
    for feed in FEEDS["waited"]:
        world.land("waited", feed, "2012-03-01T00", "2012-06-01T00")
    collector = world.collector("waited")
    span = (parse_instant("2012-03-01T00:00Z"), parse_instant("2012-04-01T00:00Z"))
    assert collector.collect(world.ledger, 60, {"asked": span, "produced elsewhere": span}) == Collection(1, 0, {})
    assert world.recorded("waited", "asked") == ["2012-03-01T00"]
    assert world.recorded("waited", "other") == []
    assert collector.collect(world.ledger, 60, {"asked": span}).recorded == 0


def test_falcon_run_searches_for_all_that_its_processes_wait_for(world: OldWorld) -> None:
    landed: list[int] = []
    display = Display(landed.append, *[lambda *said: None] * 4)

    def run() -> ForegroundResult:
        settings = world.at("01:00")
        foreground = Foreground(
            world.store, settings, definitions_of(world.store, settings), world.ledger, display, lambda cluster: None
        )
        return foreground.run(world.store.workloads_of("wait"), parse_instant("2012-05-01T03:00Z"))

    run()
    landed.clear()
    world.land("waited", "asked", "2012-05-01T02")
    world.land("waited", "asked", "2012-04-01T00", "2012-05-01T09")  # nothing waits for those
    outcome = run()
    assert sum(landed) == 1
    assert "2012-05-01T02" in world.recorded("waited", "asked")
    waiting = outcome.outlook.decisions["wait", "waited"].waiting
    assert said(waiting)[parse_instant("2012-05-01T02:00Z")] == "waits for other: other 2012-05-01T02:00Z"
