"""Passes of retention over real folders, with a real ledger: what goes, what is recorded, and what a kill leaves."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from sqlalchemy import delete, insert, select

from falcon_assets.entities.status import Status, command
from falcon_assets.features.landing.collector import Collector
from falcon_assets.features.retention import store as evictions
from falcon_assets.features.retention.passes import PassResult, RetentionPass
from falcon_assets.features.retention.plan import plan_retention
from falcon_assets.features.retention.sensors import cron_for, retention_job
from falcon_assets.features.retention.store import Eviction
from falcon_assets.history import queries
from falcon_assets.history.dagster_internals import tags as tags_of_dagster
from falcon_assets.history.dagster_internals.runs import end_as_failed
from falcon_assets.history.events.event_log import materialization
from falcon_assets.history.events.feed_instances import (
    FeedInstanceAvailable,
    FeedInstanceEvicted,
    InstancesKept,
    KeptInstance,
)
from falcon_assets.history.tables import CONSUMED, ENTITY_STATUS, FEED_INSTANCES, PROCESS_INSTANCES
from falcon_assets.instances.coordination.coordinator import Coordinator
from falcon_assets.instances.store import reruns
from falcon_assets.model.frequency import Frequency
from falcon_assets.planning.instance_record import FeedState, RerunRequest
from falcon_assets.planning.reasons_to_keep import NeededByProcess
from falcon_assets.settings import Settings
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_target import ARCHIVING
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.staging import TO_ARCHIVE
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.builders import cluster_yaml
from tests.hours import hour
from tests.records import has_record, read_record
from tests.world import QUIET, MakeWorld, World

FEED = """---
kind: feed
name: {name}
frequency: hours(1)
availability_flag: _SUCCESS
schedule: {schedule}
late_arrival: {{cut_off: hours(1)}}
locations:
  data: "/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"
  stats: "/stats/{name}-${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}"
clusters:
  - name: primary
    validity: {{start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}}
    retention: {retention}
"""
RETENTION = "{limit: hours(2)}"
ARCHIVE = """
      limit: hours(2)
      action: archive
      archive_to: "/old/${YEAR}-${MONTH}-${DAY}-${HOUR}"
      archive_cluster: cold"""
PROCESS = """---
kind: feed
name: out-{name}
frequency: hours(1)
locations: {{data: "/out-{name}/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}}}}]
---
kind: process
name: {name}
schedule: {schedule}
clusters: [{{name: primary, validity: {{start: 2013-01-01T{first}:00Z, end: 2013-01-01T02:00Z}}}}]
frequency: hours(1)
inputs: [{{name: rows, feed: {feed}, start: "now(0,0)", end: "now(0,0)"}}]
outputs: [{{name: out, feed: out-{name}, instance: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: all.sql}}
"""
REPLICATED = (
    FEED.format(name="replicated", retention=RETENTION, schedule="true")
    + """    type: source
  - {name: cold, type: target, validity: {start: 2013-01-01T01:00Z, end: 2013-01-02T00:00Z}}
"""
)
LATE = "late_process: {policy: final, inputs: [{input: rows}]}\n"
PROCESSES = (
    PROCESS.format(name="late", schedule="true", first="00", feed="read").replace("T02:00Z}", "T04:00Z}")
    + LATE
    + PROCESS.format(name="reader", schedule="true", first="01", feed="needed")
    + PROCESS.format(name="asks", schedule="false", first="00", feed="gone").replace("T02:00Z}", "T01:00Z}")
    + PROCESS.format(name="picked", schedule="false", first="00", feed="queued").replace("T02:00Z}", "T09:00Z}")
    + PROCESS.format(name="backfilled", schedule="false", first="00", feed="past")
)
FEEDS = {
    "raw": (RETENTION, "true"),
    "archived": (ARCHIVE, "true"),
    "needed": (RETENTION, "true"),
    "idle": (RETENTION, "false"),
    "withdrawn": (RETENTION, "true"),
    "copied": (ARCHIVE.replace("/old", "/old-copies"), "true"),
    "suspended": (RETENTION, "true"),
    "read": (RETENTION, "true"),
    "kept": ("{limit: hours(2), keep_last: 1, minimum_age: hours(3)}", "true"),
    "dropped-no-retention": (RETENTION, "true"),
    "dropped-not-there": (RETENTION, "true"),
    "dropped-nothing": (RETENTION, "true"),
    "busy": (RETENTION, "true"),
    "again": (RETENTION, "true"),
    "job": (RETENTION, "true"),
    "gone": (RETENTION, "true"),
    "past": (RETENTION, "true"),
    "last": (RETENTION, "true"),
    "queued": (RETENTION, "true"),
}


@dataclass(frozen=True)
class RetainedWorld(World):
    """The entities, their folders and their history."""

    def folder(self, feed: str, number: int, cluster: str = "primary") -> Path:
        return self.settings.home / "data" / cluster / feed / "2013-01-01" / f"{number:02}"

    def stats(self, feed: str, number: int) -> Path:
        return self.settings.home / "data/primary/stats" / f"{feed}-2013-01-01-{number:02}"

    def land(self, feed: str, *numbers: int, text: str = "row\n") -> None:
        for number in numbers:
            folder = self.folder(feed, number)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "part.json").write_text(text)
            self.stats(feed, number).parent.mkdir(exist_ok=True)
            self.stats(feed, number).write_text("123456")
            (folder / "_SUCCESS").touch()

    def collect(self, time: str) -> None:
        collector = Collector(self.store, self.store.cluster("primary"), self.at(time))
        assert collector.collect(self.ledger, 60).problems == {}
        self.ledger.catch_up()

    def retention(self, feed: str, time: str) -> RetentionPass:
        return RetentionPass(self.store, self.store.cluster("primary"), [self.store.feed(feed)], self.at(time), 0)

    def run(self, feed: str, time: str) -> PassResult:
        passed = self.retention(feed, time).run(self.ledger, "run", self.record)
        self.ledger.catch_up()
        return passed

    def record(self, events: Sequence[dg.AssetObservation]) -> None:
        for event in events:
            self.instance.report_runless_asset_event(event)

    def decide(self, feed: str, time: str, archive_cluster: str | None = None) -> None:
        """As a pass does that is killed before it touches anything."""
        retention = self.retention(feed, time)
        with self.ledger.engine.begin() as connection:
            stores = self.stores(retention.cluster.name)
            (plan,) = plan_retention(connection, self.store, stores, retention.feeds, hour(int(time[:2])))
            going = [one for one in plan.verdicts if one.action != "keep"]
            evictions.write_down(
                connection,
                [
                    Eviction("primary", feed, one, "_SUCCESS", archive_cluster, 2, 10, "killed", hour(4))
                    for one in going
                ],
            )

    def states(self, feed: str) -> dict[int, str]:
        table = FEED_INSTANCES.c
        with self.ledger.engine.connect() as connection:
            found = connection.execute(select(table.instance, table.state).where(table.feed == feed))
            return {instance.hour: state for instance, state in found}

    def row(self, feed: str, number: int) -> Any:
        with self.ledger.engine.connect() as connection:
            own = (FEED_INSTANCES.c.feed == feed, FEED_INSTANCES.c.instance == hour(number))
            return connection.execute(select(FEED_INSTANCES).where(*own)).one()

    def undone(self, feed: str) -> list[int]:
        with self.ledger.engine.connect() as connection:
            return [one.instance.hour for one in evictions.undone(connection, "primary", [feed])]


@pytest.fixture(scope="module")
def world(make_world: MakeWorld) -> RetainedWorld:
    feeds = [
        FEED.format(name=name, retention=retention, schedule=schedule) for name, (retention, schedule) in FEEDS.items()
    ]
    text = "".join([cluster_yaml(), cluster_yaml("cold"), *feeds, REPLICATED, PROCESSES])
    return make_world({"all.yaml": text, "all.sql": "SELECT 1"}, RetainedWorld)


def test_what_is_too_old_goes_and_the_ledger_says_so(world: RetainedWorld) -> None:
    world.land("raw", 0, 1, 2, 3)
    world.collect("04:00")
    assert world.run("raw", "04:00") == PassResult(2, 2 * len("row\n123456"), ())
    assert [world.folder("raw", number).exists() for number in range(4)] == [False, False, True, True]
    assert [world.stats("raw", number).exists() for number in range(4)] == [False, False, True, True]
    assert world.states("raw") == {0: "EVICTED", 1: "EVICTED", 2: "AVAILABLE", 3: "AVAILABLE"}
    row = world.row("raw", 0)
    assert (row.evicted_at, row.evicted_bytes, row.bytes) == (hour(4), 10, 4)
    key = dg.AssetKey(["primary", "raw"])
    (event,) = world.instance.fetch_observations(
        dg.AssetRecordsFilter(asset_key=key, asset_partitions=["2013-01-01T01:00Z"]), 9
    ).records
    observed = event.event_log_entry.asset_observation
    assert observed is not None
    assert observed.description == "raw 2013-01-01T01:00Z was evicted (deleted): older than hours(2)"
    gone = read_record(FeedInstanceEvicted, event)
    assert (gone.evicted, gone.bytes, gone.files) == ("delete", 10, 2)
    assert world.undone("raw") == []
    assert world.run("raw", "04:00") == PassResult(0, 0, ())


@pytest.mark.parametrize("selected", [True, False], ids=["assets", "job"])
def test_what_a_run_is_to_read_that_a_person_started_stays_until_it_ends(world: RetainedWorld, selected: bool) -> None:
    """The ledger hears of an instance when it starts, and it may wait for hours for the others of its run."""
    world.run("queued", "04:00")
    world.land("queued", 0, 1, 2, 3, 4)
    job = definitions_of(world.store, world.settings).resolve_job_def("primary__picked_job")
    tags = {tags_of_dagster.RANGE_START: "2013-01-01T01:00Z", tags_of_dagster.RANGE_END: "2013-01-01T02:00Z"}
    keys = frozenset({dg.AssetKey(["primary", "out-picked"])}) if selected else None
    single = {tags_of_dagster.PARTITION: "2013-01-01T04:00Z"}
    runs = [
        world.instance.create_run_for_job(job, status=status, tags=one, asset_selection=keys)
        for status, one in ((dg.DagsterRunStatus.STARTED, tags), (dg.DagsterRunStatus.NOT_STARTED, single))
    ]
    world.run("queued", "08:00")
    assert [number for number in range(5) if world.folder("queued", number).exists()] == [1, 2, 4]
    for run in runs:
        end_as_failed(world.instance, run, "it is over")
    assert world.run("queued", "08:00").instances == 3


def test_the_collector_does_not_bring_it_back_but_what_is_published_anew_is_there(world: RetainedWorld) -> None:
    world.land("again", 0, 1)
    world.collect("01:00")
    world.collect("04:00")
    world.run("again", "04:00")
    world.land("again", 1, text="another row\n")
    world.collect("04:30")
    assert world.states("again") == {0: "EVICTED", 1: "EVICTED"}  # after the cut-off no collector looks there
    there = FeedInstanceAvailable("primary", "again", hour(1), "anew", hour(4))
    event = materialization(dg.AssetKey(["primary", "again"]), "2013-01-01T01:00Z", there)
    world.instance.report_runless_asset_event(event)
    world.ledger.catch_up()
    assert world.states("again") == {0: "EVICTED", 1: "AVAILABLE"}
    assert world.run("again", "05:00").instances == 1
    assert world.states("again") == {0: "EVICTED", 1: "EVICTED"}


def test_archiving_to_another_cluster(world: RetainedWorld) -> None:
    world.land("archived", 0)
    assert world.run("archived", "04:00").instances == 1
    assert not world.folder("archived", 0).exists()
    old = world.settings.home / "data/cold/old"
    assert (old / "2013-01-01-00" / "part.json").read_text() == "row\n"
    assert (old / "2013-01-01-00.stats").read_text() == "123456"
    assert world.row("archived", 0).evicted_bytes == 10  # nobody had seen it before


def test_what_is_needed_stays(world: RetainedWorld) -> None:
    world.land("needed", 0, 1)
    assert world.run("needed", "04:00").instances == 1
    assert world.folder("needed", 1).exists()
    records = world.instance.fetch_observations(dg.AssetKey(["primary", "needed"]), 9, ascending=True).records
    (event,) = [one for one in records if has_record(InstancesKept, one)]
    assert event.event_log_entry.asset_observation.description == "needed: 1 outlived their limit and are kept"
    why = "process reader 2013-01-01T01:00Z needs it: it has yet to run"
    data = NeededByProcess("reader", hour(1), "has yet to run").as_data()
    assert read_record(InstancesKept, event).kept_instances == (KeptInstance(hour(1), why, data),)


def test_what_runs_or_is_to_run_again_for_late_data_keeps_what_it_reads(world: RetainedWorld) -> None:
    """The first instance runs, the second is asked to run again, the third waits for the check of a change."""
    world.land("read", 0, 1, 2, 3)
    world.collect("04:00")
    own = {"process": "late", "cluster": "primary"}
    states = ["RUNNING", "SUCCEEDED", "SUCCEEDED", "SUCCEEDED"]
    with world.ledger.engine.connect() as connection:  # nothing of it is committed
        for number, state in enumerate(states):
            known = {"reason": "", "attempt": 1, "failures": 0, "run_id": "r", "event_id": 1}
            row = own | {"nominal": hour(number), "state": state} | known
            connection.execute(insert(PROCESS_INSTANCES).values(row))
            read = {"input": "rows", "input_cluster": "primary", "feed": "read", "instance": hour(number)}
            versions = {"read_event": 1, "stale": number == 2}
            connection.execute(insert(CONSUMED).values(own | {"nominal": hour(number)} | read | versions))
        request = RerunRequest("late", 1, 0, hour(4))
        reruns.request(connection, {("late", "primary", hour(1)): request})
        feed = world.store.feed("read")
        (plan,) = plan_retention(connection, world.store, world.stores("primary"), [feed], hour(6))
        connection.rollback()
    reasons = {one.instance.nominal.hour: one.reason for one in plan.verdicts}
    needed = "process late 2013-01-01T0{}:00Z needs it: it {}"
    assert reasons == {
        0: needed.format(0, "is in run r"),
        1: needed.format(1, "is to run again for late data"),
        2: needed.format(2, "is to run again for late data"),
        3: "older than hours(2)",
    }


def test_what_keep_last_and_minimum_age_cover_stays(world: RetainedWorld) -> None:
    world.land("kept", 0, 1)
    world.collect("02:30")
    world.land("kept", 2)
    world.collect("03:00")
    assert world.run("kept", "05:29").instances == 0
    assert world.run("kept", "05:30").instances == 2
    assert world.run("kept", "20:00").instances == 0
    assert world.folder("kept", 2).exists()


def test_what_a_target_has_not_replicated_stays(world: RetainedWorld) -> None:
    """The target's validity begins an hour later: it will never have the first instance."""
    world.land("replicated", 0, 1, 2)
    world.collect("05:00")
    assert world.run("replicated", "05:00").instances == 1
    assert [world.folder("replicated", number).exists() for number in range(3)] == [False, True, True]
    for number, state in [(1, FeedState.AVAILABLE), (2, FeedState.EVICTED)]:
        with world.ledger.engine.begin() as connection:
            row = {**world.row("replicated", number)._mapping, "cluster": "cold", "state": state.value}
            connection.execute(insert(FEED_INSTANCES).values(row | {"evicted_at": hour(4)}))
    assert world.run("replicated", "05:00").instances == 2
    with world.ledger.engine.begin() as connection:  # put there by hand, and in no history
        connection.execute(delete(FEED_INSTANCES).where(FEED_INSTANCES.c.cluster == "cold"))


def test_feeds_that_are_not_running_are_left_alone(world: RetainedWorld) -> None:
    world.land("idle", 0)
    assert world.run("idle", "04:00") == PassResult(0, 0, ())
    with world.ledger.engine.begin() as connection:
        command(connection, world.store.feed("idle"), Status.RUNNING, hour(4))
    assert world.run("idle", "04:00").instances == 1


def test_nobody_waits_for_what_was_evicted(world: RetainedWorld) -> None:
    world.land("gone", 0, 1)
    world.collect("02:00")
    assert world.run("gone", "04:00").instances == 2  # who reads it is not scheduled
    (asks,) = world.store.workloads_of("asks")
    with world.ledger.engine.begin() as connection:
        command(connection, asks.entity, Status.RUNNING, hour(4))
    outlook = Coordinator(world.store, world.at("04:00"), [asks]).decide(world.ledger)
    decision = outlook.decisions["asks", "primary"]
    said = "does not wait: rows: gone 2013-01-01T00:00Z was evicted on 2013-01-01T04:00Z"
    assert [(nominal, str(why)) for nominal, why in decision.timed_out] == [(hour(0), said)]
    world.ledger.catch_up()
    with world.ledger.engine.connect() as connection:
        record = queries.some_records(connection, "asks", "primary", [hour(0)])[hour(0)]
    assert (record.state.value, record.reason) == ("TIMED_OUT", said)


def test_a_backfill_into_the_evicted_past_says_so(world: RetainedWorld) -> None:
    world.land("past", 0)
    world.run("past", "04:00")
    job = definitions_of(world.store, world.at("04:00")).resolve_job_def("primary__backfilled_job")
    result = job.execute_in_process(
        instance=world.instance,
        partition_key="2013-01-01T00:00Z",
        run_config=QUIET,
        raise_on_error=False,
    )
    assert not result.success
    world.ledger.catch_up()
    with world.ledger.engine.connect() as connection:
        record = queries.some_records(connection, "backfilled", "primary", [hour(0)])[hour(0)]
    assert record.reason == (
        "backfilled on primary at 2013-01-01T00:00Z cannot run without 1 input instance(s):\n"
        f"rows: past 2013-01-01T00:00Z at {world.folder('past', 0)}, evicted on 2013-01-01T04:00Z"
    )


def test_what_a_killed_pass_had_begun_is_completed_and_of_the_rest_is_decided_anew(world: RetainedWorld) -> None:
    world.land("withdrawn", 0, 1)
    world.decide("withdrawn", "04:00")
    shutil.rmtree(world.folder("withdrawn", 0))
    feed = world.store.feed("withdrawn")
    entry = feed.clusters[0]
    longer = entry.retention and entry.retention.model_copy(update={"limit": Frequency.parse("hours(9)")})
    changed = feed.model_copy(update={"clusters": (entry.model_copy(update={"retention": longer}),)})
    retention = replace(world.retention("withdrawn", "04:00"), feeds=[changed])
    assert retention.run(world.ledger, "second", world.record) == PassResult(1, 10, ())
    assert (world.folder("withdrawn", 1).exists(), world.stats("withdrawn", 0).exists()) == (True, False)
    assert world.undone("withdrawn") == []
    assert world.run("withdrawn", "04:00") == PassResult(1, 10, ())


def test_what_a_killed_pass_had_copied_of_an_instance_that_stays_goes(world: RetainedWorld) -> None:
    """Where it cannot be removed the decision stays for the next pass; where its cluster is no more, nobody can."""
    world.land("copied", 0)
    world.decide("copied", "04:00", "cold")
    cold = ClusterStore(world.store.cluster("cold"), world.settings.home, {})
    output = OutputTarget("/old-copies/2013-01-01-00", "_SUCCESS")
    copied = Path(kind_of(cold).copy_target(output, TO_ARCHIVE, ARCHIVING).folder)
    shutil.rmtree(copied.parent, ignore_errors=True)
    copied.parent.parent.mkdir(parents=True, exist_ok=True)
    copied.parent.touch()
    problem = (
        "copied 2013-01-01T00:00Z: cluster 'cold': cannot remove what was copied to /old-copies/2013-01-01-00: "
        f"something that is not a folder is where a folder is needed: move it away ({copied})"
    )
    assert world.run("copied", "01:00") == PassResult(0, 0, (problem,))
    assert world.undone("copied") == [0]
    copied.parent.unlink()
    copied.mkdir(parents=True)
    (copied / "part.json").write_text("ro")
    assert world.run("copied", "01:00") == PassResult(0, 0, ())
    assert (copied.exists(), world.undone("copied"), world.folder("copied", 0).exists()) == (False, [], True)
    world.decide("copied", "04:00", "no-more")
    assert world.run("copied", "01:00") == PassResult(0, 0, ())
    assert world.undone("copied") == []


def test_an_instance_that_came_back_is_decided_on_anew(world: RetainedWorld) -> None:
    """Its new action counts, and it is measured as it is."""
    world.land("again", 4)
    world.decide("again", "08:00")
    world.land("again", 4, text="a longer row\n")
    assert world.run("again", "08:00") == PassResult(1, len("a longer row\n") + 6, ())


def test_what_was_begun_of_a_suspended_feed_is_completed_and_nothing_else_is(world: RetainedWorld) -> None:
    world.land("suspended", 0, 1)
    world.decide("suspended", "04:00")
    with world.ledger.engine.begin() as connection:
        command(connection, world.store.feed("suspended"), Status.SUSPENDED, hour(4))
    shutil.rmtree(world.folder("suspended", 0))
    assert world.run("suspended", "04:00") == PassResult(1, 10, ())
    assert world.states("suspended") == {0: "EVICTED"}
    assert (world.folder("suspended", 1).exists(), world.undone("suspended")) == (True, [])


@pytest.mark.parametrize("now_declared", ["no retention", "not there", "nothing"])
def test_a_feed_that_is_not_retained_any_more(world: RetainedWorld, now_declared: str) -> None:
    """Any pass over the cluster completes what was begun, and nothing goes that was whole."""
    name = f"dropped-{now_declared.replace(' ', '-')}"
    world.land(name, 0, 1)
    world.decide(name, "04:00")
    shutil.rmtree(world.folder(name, 0))
    feed, feeds = world.store.feed(name), dict(world.store.feeds)
    entry = feed.clusters[0].model_copy(update={"retention": None})
    if now_declared == "nothing":
        del feeds[name]
    else:
        moved = entry.model_copy(update={"name": "cold"}) if now_declared == "not there" else entry
        feeds[name] = feed.model_copy(update={"clusters": (moved,)})
    store = replace(world.store, feeds=feeds)
    other = RetentionPass(store, store.cluster("primary"), [store.feed("raw")], world.at("04:00"), 0)
    assert other.run(world.ledger, "other", world.record) == PassResult(1, 10, ())
    world.ledger.catch_up()
    assert world.states(name) == {0: "EVICTED"}
    assert world.stats(name, 0).exists() is False
    assert (world.folder(name, 1).exists(), world.stats(name, 1).exists(), world.undone(name)) == (True, True, [])


def test_what_cannot_be_removed_is_said_and_tried_again(world: RetainedWorld) -> None:
    world.land("busy", 0, 1)
    files = ClusterStore(world.store.cluster("primary"), world.settings.home, {})
    with kind_of(files).publish("late rerun", {"out": OutputTarget("/busy/2013-01-01/01", "_SUCCESS")}):
        passed = world.run("busy", "04:00")
    problem = (
        "busy 2013-01-01T01:00Z: cluster 'primary': cannot evict /busy/2013-01-01/01: "
        "it is being written by a run; it goes when that has ended"
    )
    assert passed == PassResult(1, 10, (problem,))
    assert world.undone("busy") == [1]
    assert world.run("busy", "04:00") == PassResult(1, 10, ())


def test_the_job_and_its_schedule(world: RetainedWorld) -> None:
    world.land("job", 0)
    job = retention_job(world.retention("job", "04:00"), Frequency.parse("hours(6)"))
    assert job.name == "primary__retention_hours_6"
    result = job.execute_in_process(instance=world.instance)
    assert result.success
    world.ledger.catch_up()
    assert world.row("job", 0).evicted_by == result.run_id
    repository = definitions_of(world.store, world.settings).get_repository_def()
    assert {one.name: one.cron_schedule for one in repository.schedule_defs} == {
        "primary__retention_hours_6_schedule": "0 0,6,12,18 * * *",
        "cold__retention_leftovers_schedule": "0 0,6,12,18 * * *",
    }


@pytest.mark.parametrize(
    ("every", "cron"),
    [
        ("hours(6)", "0 0,6,12,18 * * *"),
        ("hours(24)", "0 0 * * *"),
        ("hours(5)", "0 * * * *"),
        ("minutes(45)", "*/15 * * * *"),
        ("minutes(7)", "*/1 * * * *"),
        ("days(2)", "0 0 * * *"),
        ("months(5)", "0 0 1 * *"),
    ],
)
def test_cron_lines(every: str, cron: str) -> None:
    assert cron_for(Frequency.parse(every)) == cron


def schedule_tick(
    world: World, settings: Settings, time: int, job: str = "primary__retention_hours_6"
) -> tuple[int, str | None]:
    """How many runs a tick at that hour of the real clock starts, and why none."""
    repository = definitions_of(world.store, settings).get_repository_def()
    schedule = repository.get_schedule_def(f"{job}_schedule")
    with dg.build_schedule_context(world.instance, scheduled_execution_time=hour(time)) as context:
        found = schedule.evaluate_tick(context)
    return len(found.run_requests or []), found.skip_message


def test_a_tick_between_passes_is_skipped(world: RetainedWorld) -> None:
    assert schedule_tick(world, world.settings, 6) == (1, None)
    assert schedule_tick(world, world.settings, 7) == (0, "it is not hours(6) since the last pass")


def sensor_tick(world: RetainedWorld, time: str, cursor: str | None) -> tuple[list[str | None], str | None]:
    """The run keys of what a tick starts at that time of the falcon clock, and the next cursor."""
    repository = definitions_of(world.store, world.at(time)).get_repository_def()
    sensor = repository.get_sensor_def("primary__retention_at_once")
    with dg.build_sensor_context(world.instance, cursor=cursor, repository_def=repository) as context:
        found = sensor.evaluate_tick(context)
    return [one.run_key for one in found.run_requests or []], found.cursor


def test_passes_follow_a_simulated_clock(world: RetainedWorld) -> None:
    simulated = "the clock is simulated: the cluster's retention sensor starts the passes"
    assert schedule_tick(world, world.at("06:00"), 6) == (0, simulated)
    _, cursor = sensor_tick(world, "05:00", None)
    started = {}
    for time in ("05:59", "06:00", "11:59", "23:00"):
        started[time], cursor = sensor_tick(world, time, cursor)
    keys = [
        f"primary__retention_hours_6 at 2013-01-01T{instant}Z by 2013-01-01T{clock}:00Z"
        for instant, clock in [("06:00", "06:00"), ("18:00", "23:00"), ("06:00", "06:30")]
    ]
    assert started == {"05:59": [], "06:00": [keys[0]], "11:59": [], "23:00": [keys[1]]}
    # A clock that was put back begins anew, with a pass over the feeds that were scheduled by then.
    again, cursor = sensor_tick(world, "05:00", cursor)
    assert again == ["primary__retention_hours_6 since 2013-01-01T05:00:00+00:00"]
    assert sensor_tick(world, "06:30", cursor)[0] == [keys[2]]


def test_by_the_real_clock_passes_are_the_schedules(world: RetainedWorld) -> None:
    repository = definitions_of(world.store, world.settings).get_repository_def()
    sensor = repository.get_sensor_def("primary__retention_at_once")
    cursor = "2014-01-01T00:00:00+00:00 2013-01-01T00:00:00+00:00"
    with dg.build_sensor_context(world.instance, cursor=cursor, repository_def=repository) as context:
        assert sensor.evaluate_tick(context).run_requests == []


def test_a_pass_that_has_not_ended_is_waited_for(world: RetainedWorld) -> None:
    _, cursor = sensor_tick(world, "05:00", None)
    job = definitions_of(world.store, world.settings).resolve_job_def("primary__retention_hours_6")
    run = world.instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED)
    started, cursor = sensor_tick(world, "06:00", cursor)
    assert started == []
    world.instance.delete_run(run.run_id)
    assert sensor_tick(world, "06:10", cursor)[0] == [
        "primary__retention_hours_6 at 2013-01-01T06:00Z by 2013-01-01T06:10:00Z"
    ]


def test_feeds_that_become_scheduled_are_checked_at_once(world: RetainedWorld) -> None:
    with world.ledger.engine.begin() as connection:
        connection.execute(delete(ENTITY_STATUS))
        command(connection, world.store.feed("idle"), Status.SUBMITTED, hour(1))

    first, cursor = sensor_tick(world, "06:00", None)
    assert first == ["primary__retention_hours_6 since 2013-01-01T06:00:00+00:00"]
    again, cursor = sensor_tick(world, "06:10", cursor)
    assert again == []
    with world.ledger.engine.begin() as connection:
        command(connection, world.store.feed("idle"), Status.RUNNING, hour(7))
    later, _ = sensor_tick(world, "07:01", cursor)
    assert later == ["primary__retention_hours_6 since 2013-01-01T07:00:00+00:00"]


def test_feeds_that_become_scheduled_after_the_clock_was_set_back_are_checked_too(world: RetainedWorld) -> None:
    with world.ledger.engine.begin() as connection:
        connection.execute(delete(ENTITY_STATUS))
        command(connection, world.store.feed("idle"), Status.SUBMITTED, hour(1))
    _, cursor = sensor_tick(world, "06:00", None)
    with world.ledger.engine.begin() as connection:
        command(connection, world.store.feed("idle"), Status.RUNNING, hour(3))
    found, _ = sensor_tick(world, "03:01", cursor)
    assert found == ["primary__retention_hours_6 since 2013-01-01T03:00:00+00:00"]


def test_what_a_killed_pass_left_where_nothing_is_retained_any_more(world: RetainedWorld) -> None:
    """Its feed was the last with retention there; both its decisions and the space that it had not freed are found."""
    job = "primary__retention_leftovers"
    none = {name: feed for name, feed in world.store.feeds.items() if feed.clusters[0].retention is None}
    after = replace(world, store=replace(world.store, feeds=none, processes={}))
    nothing = (0, "no feed declares retention here, and earlier passes left nothing")
    assert schedule_tick(after, after.at("06:00"), 6, job) == nothing
    world.land("last", 0, 1)
    world.decide("last", "04:00")
    area = world.settings.home / "data/primary/.falcon/staging/evicted/batch"
    area.mkdir(parents=True)
    world.folder("last", 0).rename(area / "0")
    assert schedule_tick(after, after.at("06:00"), 6, job) == (1, None)
    nobody = RetentionPass(after.store, after.store.cluster("primary"), (), after.at("06:00"), 0)
    leftovers = retention_job(nobody, None)
    assert leftovers.name == job
    assert leftovers.execute_in_process(instance=world.instance).success
    world.ledger.catch_up()
    assert (world.states("last"), world.undone("last"), area.exists()) == ({0: "EVICTED"}, [], False)
    assert (world.stats("last", 0).exists(), world.folder("last", 1).exists()) == (False, True)
    assert schedule_tick(after, after.at("06:00"), 12, job) == nothing
    area.mkdir(parents=True)
    assert schedule_tick(after, after.at("06:00"), 12, job) == (1, None)
    area.rmdir()
