"""Late data from the file that changes to the output that is published anew: real files, runs, Spark and database."""

from __future__ import annotations

from dataclasses import dataclass, replace

import dagster as dg
from sqlalchemy import select

from falcon_assets.features.late.sensors import LateOutlook
from falcon_assets.history.events.process_instances import CameTooLate
from falcon_assets.history.mapping import run_tags
from falcon_assets.history.tables import PROCESS_INSTANCES, RERUNS
from falcon_assets.instances.store import reruns
from falcon_assets.planning.instance_record import LateChange
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.builders import cluster_yaml
from tests.hours import hour
from tests.records import has_record
from tests.world import World, said, world_of

FEED = """---
kind: feed
name: %s
frequency: hours(1)
availability_flag: _SUCCESS
format: json
schema: "n int"
late_arrival: {cut_off: hours(%s)}
locations: {data: "/%s/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T08:00Z}}]
"""
PROCESS = """---
kind: process
name: %s
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: "2013-01-01T%s:00Z"}}]
parallel: 4
frequency: hours(%s)
timeout: hours(90)
outputs: [{name: out, feed: %s, instance: "now(0,0)"}]
workflow: {engine: spark-sql, path: sum.sql}
schedule: true
"""
ROWS = '{name: rows, feed: %s, start: "now(0,0)", end: "now(%s,0)"}'
LATE_WORKFLOW = "{input: rows, workflow: {engine: spark-sql, path: late.sql}}"
SUM = "SELECT coalesce(sum(n), 0) AS n FROM rows"
LATE = "SELECT 1000 + coalesce(sum(n), 0) AS n FROM rows WHERE IF(n > 900, raise_error('nobody believes that'), true)"


def entities() -> str:
    texts = [cluster_yaml()]
    for name in ("simple", "gone", "failing", "optional", "waits", "asleep", "away"):
        texts += [FEED % (f"{name}-in", 4, f"{name}-in"), FEED % (f"{name}-out", 4, f"{name}-out")]
        own = ROWS % (f"{name}-in", 0)
        more = f"late_process: {{policy: backoff, delay: hours(1), inputs: [{LATE_WORKFLOW}]}}\n"
        if name == "gone":
            more = "late_process: {policy: final, inputs: [{input: rows}]}\n"
        if name == "away":
            more = "late_process: {policy: exp-backoff, delay: hours(1), inputs: [{input: rows}]}\n"
        if name == "optional":
            own = own.replace("}", ", optional: true}")
        if name == "failing":
            more += "retry: {policy: periodic, delay: minutes(10), attempts: 2}\n"
        texts.append(PROCESS % (name, "02", 1, f"{name}-out") + f"inputs: [{own}]\n" + more)
    for name, cut_off in (("raw", 6), ("hourly", 6), ("blocks", 6), ("copies", 6)):
        texts.append(FEED % (name, cut_off, name))
    texts.append(
        PROCESS % ("hours", "08", 1, "hourly")
        + f"inputs: [{ROWS % ('raw', 0)}]\n"
        + "late_process: {policy: final, inputs: [{input: rows}]}\n"
    )
    texts.append(
        (PROCESS % ("fours", "08", 4, "blocks"))
        + f"inputs: [{ROWS % ('hourly', 3)}]\npipelines: [blocks]\n"
        + f"late_process: {{policy: exp-backoff, inputs: [{LATE_WORKFLOW}]}}\n"
    )
    texts.append((PROCESS % ("copy", "08", 4, "copies")) + f"inputs: [{ROWS % ('blocks', 0)}]\n")
    return "".join(texts)


@dataclass(frozen=True)
class LateWorld(World):
    """The entities and their history, at any time of that day."""

    def too_late(self, feed: str) -> list[str]:
        records = self.instance.fetch_observations(dg.AssetKey(["primary", feed]), limit=100, ascending=True).records
        events = [event for record in records if (event := record.event_log_entry.asset_observation)]
        return [str(event.description) for event in events if has_record(CameTooLate, event)]

    def state(self, process: str, number: int) -> tuple[str, int, int]:
        """State, attempt and failures."""
        self.ledger.catch_up()
        table = PROCESS_INSTANCES.c
        own = (table.process == process, table.nominal == hour(number))
        with self.ledger.engine.connect() as connection:
            row = connection.execute(select(table.state, table.attempt, table.failures).where(*own)).one()
        return row.state, row.attempt, row.failures

    def requests(self) -> list[tuple[str, int]]:
        with self.ledger.engine.connect() as connection:
            return [(row.process, row.nominal.hour) for row in connection.execute(select(RERUNS))]


world = world_of({"all.yaml": entities(), "sum.sql": SUM, "late.sql": LATE}, LateWorld)


def test_a_change_inside_the_cut_off_runs_the_instance_once_more(world: LateWorld) -> None:
    world.write("simple-in", 0, 1, 2)
    assert world.step("00:10", "simple") == ["simple on primary, 2013-01-01T00:00Z, attempt 1"]
    assert world.result("simple-out", 0) == [3]
    world.write("simple-in", 0, 1, 2, 3)
    assert world.step("00:30", "simple") == []
    outlook = world.late("00:30", "simple")
    assert outlook == LateOutlook(
        waiting={
            ("simple", "primary", hour(0)): "is run again at 2013-01-01T01:00Z: simple-in 2013-01-01T00:00Z changed"
        },
        wake_at=hour(1),
    )
    assert world.step("00:59", "simple") == []
    before, now = (world.published("primary", "simple-out", 0)[0].inputs["rows"][0].version, "01:00")
    outlook = world.late(now, "simple")
    ((key, changes),) = outlook.requested.items()
    assert key == ("simple", "primary", hour(0))
    assert [(one.input, one.feed, one.instance, one.before) for one in changes] == [
        ("rows", "simple-in", hour(0), before)
    ]
    assert world.late(now, "simple") == LateOutlook(), "it is asked for once"
    (run,) = world.decide(now, "simple").runs
    assert run.tags[run_tags.LATE] == "true"
    assert world.step(now, "simple") == ["simple on primary, 2013-01-01T00:00Z, attempt 2"]
    assert world.result("simple-out", 0) == [1006]
    first, second = world.published("primary", "simple-out", 0)
    assert first.late == ()
    read = second.inputs["rows"][0].version
    assert second.late == (LateChange("rows", "simple-in", hour(0), before, read),)
    assert read != before
    assert world.step("03:00", "simple") == []
    assert world.requests() == []
    assert world.state("simple", 0) == ("SUCCEEDED", 2, 0)


def test_what_was_seen_in_time_is_due_however_late_a_tick_comes(world: LateWorld) -> None:
    world.write("asleep-in", 0, 1)
    assert len(world.step("00:10", "asleep")) == 1
    world.write("asleep-in", 0, 1, 1)
    world.collect("03:59")
    assert world.step("23:00", "asleep") == ["asleep on primary, 2013-01-01T00:00Z, attempt 2"]


def test_a_check_that_nobody_could_make_is_made_at_the_next_tick(world: LateWorld) -> None:
    for number in (0, 1):
        world.write("away-in", number, 1)
    assert len(world.step("01:10", "away")) == 1
    for number in (0, 1):
        world.write("away-in", number, 1, 1)
    # Nobody has looked at 03:00 and at 02:00; the next checks are both at 04:00.
    assert world.step("03:30", "away") == ["away on primary, 2013-01-01T00:00Z to 2013-01-01T01:00Z, attempt 2"]
    assert world.late("03:30", "away") == LateOutlook()
    for number in (0, 1):
        world.write("away-in", number, 1, 1, 1)
    # Nor does anybody at the cut-offs.
    assert world.step("09:00", "away") == ["away on primary, 2013-01-01T00:00Z to 2013-01-01T01:00Z, attempt 3"]
    assert world.too_late("away-out") == []


def test_a_change_after_the_cut_off_is_said_once_and_not_run(world: LateWorld) -> None:
    for number in (0, 1):
        world.write("gone-in", number, 1)
    assert len(world.step("01:10", "gone")) == 1
    world.collect("04:00")
    for number in (0, 1):
        world.write("gone-in", number, 1, 1)
    said = "gone-in 2013-01-01T00:00Z changed 0:30:00 after its cut-off: gone 2013-01-01T00:00Z is not run again"
    assert world.step("04:30", "gone") == []
    assert world.too_late("gone-out") == [said]
    assert world.late("04:30", "gone").too_late == ()
    world.ledger.rebuild()
    assert world.late("04:40", "gone").too_late == ()
    assert world.late("04:40", "gone").waiting == {
        ("gone", "primary", hour(1)): "is run again at 2013-01-01T05:00Z: gone-in 2013-01-01T01:00Z changed"
    }
    assert world.step("05:00", "gone") == ["gone on primary, 2013-01-01T01:00Z, attempt 2"]
    assert world.result("gone-out", 1) == [2]
    assert world.too_late("gone-out") == [said]


def test_an_optional_input_that_comes_later(world: LateWorld) -> None:
    assert world.step("00:10", "optional") == ["optional on primary, 2013-01-01T00:00Z, attempt 1"]
    assert world.result("optional-out", 0) == [0]
    world.write("optional-in", 0, 5)
    assert world.step("00:30", "optional") == []
    assert world.step("01:00", "optional") == [
        "optional on primary, 2013-01-01T00:00Z, attempt 2",
        "optional on primary, 2013-01-01T01:00Z, attempt 1",
    ]
    assert world.result("optional-out", 0) == [1005]
    (late,) = world.published("primary", "optional-out", 0)[1].late
    assert (late.before, late.instance) == (None, hour(0))


def test_a_late_rerun_that_fails_is_tried_again_for_the_same_cause(world: LateWorld) -> None:
    world.write("failing-in", 0, 1)
    assert len(world.step("00:10", "failing")) == 1
    before = world.published("primary", "failing-out", 0)[0].inputs["rows"][0].version
    world.write("failing-in", 0, 1, 999)
    world.collect("00:30")
    assert world.step("01:00", "failing") == ["failing on primary, 2013-01-01T00:00Z, attempt 2"]
    assert world.state("failing", 0) == ("FAILED", 2, 1)
    assert world.requests() == [("failing", 0)]
    outlook = world.decide("01:05", "failing").decisions["failing", "primary"]
    assert said(outlook.waiting)[hour(0)] == "is tried again at 2013-01-01T01:10Z (attempt 2 failed)"
    world.write("failing-in", 0, 1, 10, 100)
    world.collect("01:07")
    (run,) = world.decide("01:10", "failing").runs
    assert run.tags[run_tags.LATE] == "true"
    assert world.step("01:10", "failing") == ["failing on primary, 2013-01-01T00:00Z, attempt 3"]
    assert world.result("failing-out", 0) == [1111]
    third = world.published("primary", "failing-out", 0)[1]
    assert third.late[0].before == before
    assert third.late[0].after == third.inputs["rows"][0].version
    assert world.step("06:00", "failing") == []
    assert world.requests() == []


def test_a_late_rerun_that_keeps_failing_is_given_up(world: LateWorld) -> None:
    world.write("failing-in", 1, 1)
    assert len(world.step("01:15", "failing")) == 1
    world.write("failing-in", 1, 1, 999)
    world.collect("01:30")
    assert [world.step(time, "failing") != [] for time in ("02:00", "02:10", "02:20", "02:30", "05:00", "23:00")] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]
    assert world.state("failing", 1) == ("FAILED", 4, 3)
    assert world.requests() == []


def test_consumers_of_two_late_hours_run_once_and_after_both(world: LateWorld) -> None:
    both = ("hours", "fours")
    for number in range(4):
        world.write("raw", number, 1)
    assert world.step("03:10", *both) == [
        "hours on primary, 2013-01-01T00:00Z to 2013-01-01T03:00Z, attempt 1",
        "fours on primary, 2013-01-01T00:00Z, attempt 1",
    ]
    for number in (1, 2):
        world.write("raw", number, 1, number)
    world.collect("04:00")
    assert world.step("06:30", *both) == []
    # One of the hours is due, the other one an hour later: the block runs again after each.
    assert world.step("07:00", *both) == [
        "hours on primary, 2013-01-01T01:00Z, attempt 2",
        "fours on primary, 2013-01-01T00:00Z, attempt 2",
    ]
    world.write("raw", 3, 1, 3)
    world.collect("07:30")
    world.late("09:00", *both)
    assert world.requests() == [("hours", 2), ("hours", 3)]
    outlook = world.decide("09:00", *both)
    assert [run.run_key for run in outlook.runs] == [
        "hours on primary, 2013-01-01T02:00Z to 2013-01-01T03:00Z, attempt 2"
    ]
    world.execute(outlook.runs[0], "09:00")
    late = world.late("09:00", *both)
    assert [(one.feed, one.instance) for one in late.requested["fours", "primary", hour(0)]] == [
        ("hourly", hour(2)),
        ("hourly", hour(3)),
    ]
    assert world.step("09:00", *both) == ["fours on primary, 2013-01-01T00:00Z, attempt 3"]
    assert world.result("blocks", 0) == [1010]
    assert [one.instance for one in world.published("primary", "blocks", 0)[2].late] == [hour(2), hour(3)]
    assert world.step("20:00", *both) == []


def test_what_reads_an_hour_that_is_to_run_again_waits_for_it(world: LateWorld) -> None:
    both = ("hours", "fours")
    for number in range(4, 7):
        world.write("raw", number, 1)
    assert len(world.step("06:40", *both)) == 1
    world.write("raw", 4, 1, 1)
    world.collect("09:50")
    world.late("10:00", *both)
    assert world.requests() == [("hours", 4)]
    world.write("raw", 7, 1)
    world.collect("10:00")
    runs = world.decide("10:00", *both).runs
    assert [(run.run_key, run_tags.LATE in run.tags) for run in runs] == [
        ("hours on primary, 2013-01-01T04:00Z, attempt 2", True),
        ("hours on primary, 2013-01-01T07:00Z, attempt 1", False),
    ]
    world.execute(runs[1], "10:00")
    outlook = world.decide("10:00", *both)
    assert said(outlook.decisions["fours", "primary"].waiting) == {
        hour(4): "waits for the rerun of hours 2013-01-01T04:00Z"
    }
    assert world.step("10:00", *both) == [
        "hours on primary, 2013-01-01T04:00Z, attempt 2",
        "fours on primary, 2013-01-01T04:00Z, attempt 1",
    ]
    assert world.result("blocks", 4) == [5]


def test_what_reads_a_follower_waits_before_anybody_has_asked_for_it(world: LateWorld) -> None:
    """Coordinators look more often than late-arrival sensors do."""
    world.write("raw", 5, 1, 7)
    world.collect("10:50")
    world.late("11:00", "hours", "fours")
    (run,) = world.decide("11:00", "hours", "fours").runs
    assert run.run_key == "hours on primary, 2013-01-01T05:00Z, attempt 2"
    world.execute(run, "11:00")
    outlook = world.decide("11:00", "copy")
    assert [run.run_key for run in outlook.runs] == ["copy on primary, 2013-01-01T00:00Z, attempt 1"]
    assert said(outlook.decisions["copy", "primary"].waiting) == {
        hour(4): "waits for the rerun of fours 2013-01-01T04:00Z"
    }
    assert world.step("11:00", "hours", "fours", "copy") == [
        "fours on primary, 2013-01-01T04:00Z, attempt 2",
        "copy on primary, 2013-01-01T00:00Z, attempt 1",
        "copy on primary, 2013-01-01T04:00Z, attempt 1",
    ]


def test_a_rerun_names_what_came_since_it_was_asked_for(world: LateWorld) -> None:
    """A coordinator may launch it before the late-arrival sensor has seen the last of what it waited for."""
    both = ("hours", "fours")
    for number in (6, 7):
        world.write("raw", number, 1, 2)
    world.collect("11:50")
    world.late("13:00", *both)
    (run,) = world.decide("13:00", *both).runs
    assert run.run_key == "hours on primary, 2013-01-01T06:00Z to 2013-01-01T07:00Z, attempt 2"
    world.execute(run, "13:00")
    key = ("fours", "primary", hour(4))
    changes = world.late("13:00", *both).requested[key]
    assert [one.instance for one in changes] == [hour(6), hour(7)]
    with world.ledger.engine.begin() as connection:
        (asked,) = reruns.requests_of(connection, "fours", "primary", [hour(4)]).values()
        reruns.request(connection, {key: replace(asked, changes=changes[:1])})
    (run,) = world.decide("13:00", *both).runs
    world.execute(run, "13:00")
    assert [one.instance for one in world.published("primary", "blocks", 4)[-1].late] == [hour(6), hour(7)]
    assert world.step("20:00", *both) == []


def test_a_sensor_searches_for_late_data_of_each_pipeline(world: LateWorld) -> None:
    world.write("waits-in", 0, 1)
    assert len(world.step("00:10", "waits")) == 1
    world.write("waits-in", 0, 1, 1)
    world.collect("00:20")
    repository = definitions_of(world.store, world.at("01:00")).get_repository_def()
    assert sorted(sensor.name for sensor in repository.sensor_defs if "late" in sensor.name) == [
        "blocks__late_arrival",
        "default__late_arrival",
    ]
    sensor = repository.get_sensor_def("default__late_arrival")
    with dg.build_sensor_context(instance=world.instance, repository_def=repository) as context:
        first = sensor.evaluate_tick(context)
        second = sensor.evaluate_tick(context)
    assert first.skip_message == "1 instance is to run again, because what it had read changed"
    assert second.skip_message == "nothing changed after it was read"
    assert world.requests() == [("waits", 0)]


def test_the_ledger_is_what_a_rebuild_makes_of_history(world: LateWorld) -> None:
    world.ledger.catch_up()
    before, requests = world.everything(), world.requests()
    assert {row.late for row in before["feed_instances"]} == {True, False}
    assert sum(row.too_late is not None for row in before["consumed"]) == 1
    assert sum(row.stale for row in before["consumed"]) > 0
    assert world.ledger.rebuild() > 50
    assert world.everything() == before
    assert world.requests() == requests != []
