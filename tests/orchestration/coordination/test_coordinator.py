"""What a coordinator decides from real history in a real database, run by run and tick by tick."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import dagster as dg
import pytest
from dagster._core.events import AssetObservationData, EngineEventData
from dagster._utils.error import serializable_error_info_from_exc_info
from sqlalchemy import select

from falcon_assets.entities.status import Status, command
from falcon_assets.history.database import try_lock, unlock
from falcon_assets.history.events.event_log import materialization
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.history.events.process_instances import InstanceChanged
from falcon_assets.history.mapping import run_tags
from falcon_assets.history.tables import CONSUMED, FEED_INSTANCES, FOLD, PROCESS_INSTANCES
from falcon_assets.instances.coordination.coordinator import Coordinator, Outlook, PlannedRun
from falcon_assets.instances.coordination.pipeline_lock import coordinator_lock
from falcon_assets.instances.rules.situation import Decision
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.planning.instance_record import InstanceState
from tests.builders import cluster_yaml, land_rows
from tests.hours import hour
from tests.records import read_record
from tests.world import World, said, world_of

PROCESS = """---
kind: feed
name: in-{name}
frequency: hours(1)
availability_flag: _SUCCESS
format: json
schema: "delay int"
locations: {{data: "/in-{name}/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}}}}]
---
kind: feed
name: out-{name}
frequency: hours(1)
availability_flag: _SUCCESS
locations: {{data: "/out-{name}/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}}}}]
---
kind: process
name: {name}
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: "2013-01-01T{end}:00Z"}}}}]
frequency: hours(1)
outputs: [{{name: out, feed: out-{name}, instance: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: keep.sql}}
"""
ROWS = 'inputs: [{name: rows, feed: in-%s, start: "now(0,0)", end: "now(0,0)"}]\n'
KEEP = "SELECT delay FROM rows WHERE IF(delay > 1000, raise_error('nobody waits that long'), true)"
WITH_ROWS = {
    "neighbours": "parallel: 2\n",
    "gaps": "parallel: 4\n",
    "created": "parallel: 3\n",
    "failing": "retry: {policy: periodic, delay: minutes(10), attempts: 1}\n",
    "late": "timeout: minutes(30)\n",
    "newest": "order: LAST_ONLY\n",
    "submitted": "schedule: false\n",
    "suspended": "parallel: 5\n",
    "broken-off": "parallel: 2\nretry: {policy: final}\n",
    "killed": "parallel: 2\n",
    "half-done": "parallel: 3\n",
    "held": "pipelines: [watched]\n",
}
OTHERS = {
    "optional": 'inputs: [{name: rows, feed: in-optional, start: "now(-1,0)", end: "now(0,0)", optional: true}]\n',
    "latest": 'inputs: [{name: rows, feed: in-latest, start: "latest(0)", end: "latest(0)"}]\n',
    "up-to": 'inputs: [{name: rows, feed: in-up-to, start: "today(0,0)", end: "latest(0)"}]\n',
    "alone": "parallel: 3\n",
}


def entities() -> str:
    declared = {name: ROWS % name + more for name, more in WITH_ROWS.items()} | OTHERS
    texts = []
    for name, more in declared.items():
        schedule = "" if "schedule:" in more else "schedule: true\n"
        texts.append(PROCESS.format(name=name, end="05" if name != "failing" else "03") + more + schedule)
    return cluster_yaml() + "".join(texts)


def hours(nominals: Any) -> list[int]:
    return [nominal.hour for nominal in nominals]


@dataclass(frozen=True)
class CoordinatedWorld(World):
    """The entities, their history and the ways to make some."""

    def tick(self, process: str, time: str, **limits: Any) -> tuple[Outlook, Decision]:
        """What is decided about a process at a time of that day."""
        outlook = self.decide(time, process, **limits)
        return outlook, outlook.decisions[process, "primary"]

    def create(self, run: PlannedRun, time: str) -> dg.DagsterRun:
        """The run as a launcher makes it; it does not start."""
        job = self.definitions(time).resolve_job_def(run.job_name)
        return self.instance.create_run_for_job(job, tags=dict(run.tags), status=dg.DagsterRunStatus.NOT_STARTED)

    def start(self, run: dg.DagsterRun) -> None:
        event = dg.DagsterEvent(dg.DagsterEventType.RUN_START.value, run.job_name, message="started")
        self.instance.report_dagster_event(event, run.run_id)

    def say(self, run: dg.DagsterRun, nominal: datetime, state: InstanceState, time: str) -> None:
        """The run says that an instance came to a state."""
        process = run.tags[run_tags.PROCESS]
        changed = InstanceChanged(process, "primary", nominal, state, self.at(time).now())
        observation = changed.event(dg.AssetKey(["primary", f"out-{process}"]), format_instant(nominal))
        event = dg.DagsterEvent(
            dg.DagsterEventType.ASSET_OBSERVATION.value,
            run.job_name,
            event_specific_data=AssetObservationData(observation),
        )
        self.instance.report_dagster_event(event, run.run_id)

    def land(self, process: str, *numbers: int) -> None:
        """Hours of the input of a process are recorded as landed; there is nothing to read."""
        for number in numbers:
            there = FeedInstanceAvailable("primary", f"in-{process}", hour(number), "v1", hour(number))
            event = materialization(dg.AssetKey(["primary", f"in-{process}"]), format_instant(hour(number)), there)
            self.instance.report_runless_asset_event(event)

    def write(self, process: str, number: int, *delays: int) -> None:
        """An hour of the input of a process really lands, and is recorded."""
        folder = self.settings.home / f"data/primary/in-{process}/2013-01-01/{number:02}"
        land_rows(folder, *({"delay": delay} for delay in delays))
        self.land(process, number)

    def states(self, process: str) -> dict[int, str]:
        return {number: row["state"] for number, row in self.rows(process).items()}

    def observed(self, process: str) -> list[tuple[str, str, str]]:
        """The partition, state and reason of every observation on the output of a process, as they came."""
        key = dg.AssetKey(["primary", f"out-{process}"])
        records = self.instance.fetch_observations(key, limit=100, ascending=True).records
        events = [event for record in records if (event := record.event_log_entry.asset_observation)]
        changes = [(str(event.partition), read_record(InstanceChanged, event)) for event in events]
        return [(partition, one.state.value, one.reason) for partition, one in changes]


world = world_of({"all.yaml": entities(), "keep.sql": KEEP}, CoordinatedWorld)


def test_neighbours_whose_inputs_landed_run_once_and_in_one_run(world: CoordinatedWorld) -> None:
    for number in (0, 1, 2):
        world.write("neighbours", number, 5, number)
    outlook, decision = world.tick("neighbours", "02:30")
    (run,) = outlook.runs
    assert run.run_key == "neighbours on primary, 2013-01-01T00:00Z to 2013-01-01T02:00Z, attempt 1"
    assert run.job_name == "primary__neighbours_job"
    assert dict(run.tags) == {
        run_tags.PROCESS: "neighbours",
        run_tags.CLUSTER: "primary",
        "falcon/instances": "2013-01-01T00:00Z to 2013-01-01T02:00Z (3)",
        run_tags.NOMINAL_TIMES: "2013-01-01T00:00Z 2013-01-01T01:00Z 2013-01-01T02:00Z",
        ".dagster/falcon_attempts": "1 1 1",
        ".dagster/falcon_slots": "2",
        ".dagster/falcon_clock": "2013-01-01T02:30:00Z",
        "dagster/asset_partition_range_start": "2013-01-01T00:00Z",
        "dagster/asset_partition_range_end": "2013-01-01T02:00Z",
        "dagster/priority": "-1",
    }
    assert decision.wake_at == hour(3)
    result = world.execute(run, "02:30")
    assert result.success
    rows = world.rows("neighbours")
    assert {(row["state"], row["attempt"], row["failures"], row["queued_run"]) for row in rows.values()} == {
        ("SUCCEEDED", 1, 0, None)
    }
    assert {(row["run_id"], row["started"], row["ended"]) for row in rows.values()} == {
        (result.run_id, world.at("02:30").now(), world.at("02:30").now())
    }
    with world.ledger.engine.connect() as connection:
        found = connection.execute(select(CONSUMED).where(CONSUMED.c.process == "neighbours")).all()
    assert sorted((row.nominal.hour, row.input, row.feed, row.instance.hour, len(row.version)) for row in found) == [
        (number, "rows", "in-neighbours", number, 32) for number in (0, 1, 2)
    ]
    outlook, decision = world.tick("neighbours", "04:30")
    assert outlook.runs == ()
    assert decision.first_open == 3
    assert said(decision.waiting) == {
        hour(number): f"waits for rows: in-neighbours 2013-01-01T0{number}:00Z" for number in (3, 4)
    }
    world.land("neighbours", 4)
    outlook, decision = world.tick("neighbours", "04:31")
    assert [hours(one.launch.nominals) for one in outlook.runs] == [[4]]
    assert hours(decision.waiting) == [3]


def test_slots_are_shared_by_runs(world: CoordinatedWorld) -> None:
    world.land("gaps", 0, 1, 3, 4)
    outlook, _ = world.tick("gaps", "04:00")
    assert [(hours(run.launch.nominals), run.launch.slots) for run in outlook.runs] == [([0, 1], 2), ([3, 4], 2)]
    first, second = (world.create(run, "04:00") for run in outlook.runs)
    world.land("gaps", 2)
    outlook, decision = world.tick("gaps", "04:00")
    assert outlook.runs == ()
    assert said(decision.waiting) == {
        hour(0): f"is in run {first.run_id}",
        hour(1): f"is in run {first.run_id}",
        hour(2): "waits for a free slot (parallel: 4)",
        hour(3): f"is in run {second.run_id}",
        hour(4): f"is in run {second.run_id}",
    }


def test_a_run_that_never_started_counts_as_in_flight(world: CoordinatedWorld) -> None:
    world.land("created", 0)
    outlook, _ = world.tick("created", "00:00")
    run = world.create(outlook.runs[0], "00:00")
    outlook, decision = world.tick("created", "00:01")
    assert outlook.runs == ()
    assert said(decision.waiting) == {hour(0): f"is in run {run.run_id}"}
    assert world.rows("created") == {}
    world.start(run)
    assert world.rows("created")[0]["queued_run"] == run.run_id
    assert world.tick("created", "00:02")[0].runs == ()


def test_a_run_holds_no_slots_for_what_it_finished(world: CoordinatedWorld) -> None:
    world.land("half-done", 0, 1, 2)
    outlook, _ = world.tick("half-done", "02:00")
    run = world.create(outlook.runs[0], "02:00")
    world.start(run)
    for number in (0, 1):
        world.say(run, hour(number), InstanceState.SUCCEEDED, "02:01")
    world.land("half-done", 3, 4)
    assert world.tick("half-done", "02:02")[1].first_open == 2
    outlook, _ = world.tick("half-done", "04:00")
    assert [(hours(one.launch.nominals), one.launch.slots) for one in outlook.runs] == [([3, 4], 2)]


def test_a_failure_is_retried_after_its_delay_and_not_forever(world: CoordinatedWorld) -> None:
    world.write("failing", 0, 1)
    world.write("failing", 1, 9999)
    world.write("failing", 2, 3)
    outlook, _ = world.tick("failing", "02:30")
    # The process runs one at a time, and one that fails does not keep the next from its turn.
    assert [hours(run.launch.nominals) for run in outlook.runs] == [[0, 1, 2]]
    assert not world.execute(outlook.runs[0], "02:30").success
    rows = world.rows("failing")
    assert world.states("failing") == {0: "SUCCEEDED", 1: "FAILED", 2: "SUCCEEDED"}
    assert "nobody waits that long" in rows[1]["reason"]
    assert (rows[1]["attempt"], rows[1]["failures"], rows[1]["ended"]) == (1, 1, world.at("02:30").now())
    assert ("2013-01-01T01:00Z", "FAILED", rows[1]["reason"]) in world.observed("failing")
    outlook, decision = world.tick("failing", "02:39")
    assert outlook.runs == ()
    assert said(decision.waiting) == {hour(1): "is tried again at 2013-01-01T02:40Z (attempt 1 failed)"}
    assert decision.wake_at == parse_instant("2013-01-01T02:40Z")
    outlook, _ = world.tick("failing", "02:40")
    assert [run.run_key for run in outlook.runs] == ["failing on primary, 2013-01-01T01:00Z, attempt 2"]
    assert not world.execute(outlook.runs[0], "02:40").success
    outlook, decision = world.tick("failing", "23:00")
    assert (outlook.runs, dict(decision.waiting), decision.first_open, decision.wake_at) == ((), {}, 3, None)
    row = world.rows("failing")[1]
    assert (row["state"], row["attempt"], row["failures"]) == ("FAILED", 2, 2)


def test_an_instance_whose_inputs_do_not_come_times_out(world: CoordinatedWorld) -> None:
    assert world.tick("late", "00:10")[1].wake_at == parse_instant("2013-01-01T00:40Z")
    assert world.tick("late", "00:39")[1].timed_out == ()
    outlook, decision = world.tick("late", "00:40")
    reason = "missing after minutes(30): rows: in-late 2013-01-01T00:00Z"
    assert outlook.runs == ()
    assert said(decision.timed_out) == {hour(0): reason}
    assert world.observed("late") == [("2013-01-01T00:00Z", "TIMED_OUT", reason)]
    (record,) = world.instance.fetch_observations(dg.AssetKey(["primary", "out-late"]), limit=1).records
    event = record.event_log_entry.asset_observation
    assert event is not None
    assert event.metadata["causes"] == dg.MetadataValue.md(
        "- feed in-late 2013-01-01T00:00Z on primary **MISSING**: has not come to /in-late/2013-01-01/00: "
        "40 min late by its nominal time\n"
        "    - fix: `falcon instance collect in-late --start 2013-01-01T00:00Z --end 2013-01-01T00:00Z "
        "--cluster primary`"
    )
    row = world.rows("late")[0]
    assert (row["state"], row["reason"], row["attempt"], row["run_id"]) == ("TIMED_OUT", reason, 0, None)
    assert row["ended"] == world.at("00:40").now()
    assert row["reason_data"]["kind"] == "inputs_timed_out"
    assert row["reason_data"]["missing"]["inputs"] == [
        {"input": "rows", "feed": "in-late", "instance": "2013-01-01T00:00Z"}
    ]
    world.land("late", 0)
    assert world.tick("late", "00:41")[0].runs == ()
    assert len(world.observed("late")) == 1


def test_last_only_skips_what_is_older(world: CoordinatedWorld) -> None:
    world.land("newest", 0, 1, 2)
    outlook, decision = world.tick("newest", "02:00")
    assert [hours(run.launch.nominals) for run in outlook.runs] == [[2]]
    reason = "LAST_ONLY: 2013-01-01T02:00Z is newer"
    assert world.observed("newest") == [
        ("2013-01-01T01:00Z", "SKIPPED", reason),
        ("2013-01-01T00:00Z", "SKIPPED", reason),
    ]
    assert world.states("newest") == {0: "SKIPPED", 1: "SKIPPED"}
    assert said(decision.skipped) == {hour(1): reason, hour(0): reason}
    world.create(outlook.runs[0], "02:00")
    assert world.tick("newest", "02:01")[0].runs == ()


def test_what_is_not_scheduled_does_not_run(world: CoordinatedWorld) -> None:
    world.land("submitted", 0)
    outlook, decision = world.tick("submitted", "23:00")
    assert (outlook.runs, decision.timed_out, decision.wake_at) == ((), (), None)
    assert said(decision.waiting)[hour(0)] == "does not run by itself: it is not scheduled, or suspended"


def test_what_was_suspended_catches_up_when_it_is_resumed(world: CoordinatedWorld) -> None:
    process = world.store.process("suspended")
    assert said(world.tick("suspended", "00:00")[1].waiting) == {
        hour(0): "waits for rows: in-suspended 2013-01-01T00:00Z"
    }
    world.land("suspended", 0, 1, 3)
    with world.ledger.engine.begin() as connection:
        command(connection, process, Status.SUSPENDED, world.at("00:30").now())
    outlook, decision = world.tick("suspended", "10:00")
    assert (outlook.runs, decision.timed_out) == ((), ())
    assert hours(decision.waiting) == [0, 1, 2, 3, 4]
    with world.ledger.engine.begin() as connection:
        command(connection, process, Status.RUNNING, world.at("10:00").now())
    outlook, decision = world.tick("suspended", "10:00")
    assert [hours(run.launch.nominals) for run in outlook.runs] == [[0, 1], [3]]
    # What lacks its inputs has its whole time from the moment of the resumption.
    assert decision.timed_out == ()
    assert decision.wake_at == hour(16)


def test_optional_inputs_are_not_waited_for(world: CoordinatedWorld) -> None:
    outlook, _ = world.tick("optional", "01:00")
    assert [hours(run.launch.nominals) for run in outlook.runs] == [[0, 1]]


def test_latest_waits_until_there_is_something(world: CoordinatedWorld) -> None:
    assert said(world.tick("latest", "02:00")[1].waiting)[hour(0)] == "waits for rows: in-latest latest(0) to latest(0)"
    world.land("latest", 1)
    outlook, decision = world.tick("latest", "02:00")
    assert [hours(run.launch.nominals) for run in outlook.runs] == [[1, 2]]
    assert hours(decision.waiting) == [0]


def test_a_window_up_to_the_latest_waits_for_one_and_for_those_before_it(world: CoordinatedWorld) -> None:
    assert said(world.tick("up-to", "02:00")[1].waiting)[hour(0)] == "waits for rows: in-up-to today(0,0) to latest(0)"
    world.land("up-to", 1)
    waiting = said(world.tick("up-to", "02:00")[1].waiting)
    assert waiting[hour(2)] == "waits for rows: in-up-to 2013-01-01T00:00Z"
    world.land("up-to", 0)
    outlook, decision = world.tick("up-to", "02:00")
    assert ([hours(run.launch.nominals) for run in outlook.runs], decision.waiting) == ([[0, 1, 2]], {})


@pytest.mark.parametrize(
    ("time", "limits", "started"),
    [
        pytest.param("00:00", {}, [[0]], id="at its first instance"),
        pytest.param("01:59", {}, [[0, 1]], id="before the third"),
        pytest.param("09:00", {}, [[0, 1, 2, 3, 4]], id="after its validity"),
        pytest.param("09:00", {"until": hour(1)}, [[0, 1]], id="until"),
        pytest.param("09:00", {"budget": 2}, [[0, 1]], id="budget"),
    ],
)
def test_without_inputs_only_time_matters(
    world: World, time: str, limits: dict[str, Any], started: list[list[int]]
) -> None:
    assert [hours(run.launch.nominals) for run in world.tick("alone", time, **limits)[0].runs] == started


def test_processes_share_the_budget(world: CoordinatedWorld) -> None:
    both = world.store.workloads_of("alone", "optional")
    outlook = Coordinator(world.store, world.at("09:00"), both).decide(world.ledger, budget=7)
    assert [hours(run.launch.nominals) for run in outlook.runs] == [[0, 1, 2, 3, 4], [0, 1]]
    assert said(outlook.decisions["optional", "primary"].waiting) == {
        hour(number): "waits for a free slot (parallel: 1)" for number in (2, 3, 4)
    }


def test_a_run_that_breaks_off_fails_what_was_running_and_frees_the_rest(world: CoordinatedWorld) -> None:
    world.land("broken-off", 0, 1, 2)
    outlook, _ = world.tick("broken-off", "02:00")
    run = world.create(outlook.runs[0], "02:00")
    world.start(run)
    world.say(run, hour(0), InstanceState.RUNNING, "02:00")
    assert world.states("broken-off") == {0: "RUNNING", 1: "WAITING", 2: "WAITING"}
    assert world.tick("broken-off", "02:01")[0].runs == ()
    world.instance.report_run_failed(run, message="the machine is gone")
    rows = world.rows("broken-off")
    assert {number: (row["state"], row["queued_run"]) for number, row in rows.items()} == {
        0: ("FAILED", None),
        1: ("WAITING", None),
        2: ("WAITING", None),
    }
    assert rows[0]["reason"] == "the machine is gone"
    assert rows[0]["ended"] == hour(2), "on the clock of the run"
    outlook, decision = world.tick("broken-off", "02:02")
    assert [one.run_key for one in outlook.runs] == [
        "broken-off on primary, 2013-01-01T01:00Z to 2013-01-01T02:00Z, attempt 2"
    ]
    assert decision.first_open == 1


def test_a_run_that_fails_before_it_starts_is_an_attempt(world: CoordinatedWorld) -> None:
    # Dagster starts no second run with the key of the first one.
    world.land("created", 1)
    outlook, _ = world.tick("created", "01:00")
    run = world.create(outlook.runs[0], "01:00")
    event = dg.DagsterEvent(dg.DagsterEventType.RUN_STARTING.value, run.job_name, message="starting")
    world.instance.report_dagster_event(event, run.run_id)
    world.instance.report_run_failed(run, message="no worker")
    row = world.rows("created")[1]
    assert (row["state"], row["reason"], row["attempt"], row["failures"]) == ("FAILED", "no worker", 1, 1)
    assert world.tick("created", "01:09")[0].runs == ()
    (again,) = world.tick("created", "01:10")[0].runs
    assert again.launch == outlook.runs[0].launch
    assert again.run_key == "created on primary, 2013-01-01T01:00Z, attempt 2"
    run = world.create(again, "01:10")
    try:
        raise ImportError("cannot import name 'rates' from 'team.workflows'")
    except ImportError:
        error = EngineEventData.engine_error(serializable_error_info_from_exc_info(sys.exc_info()))
    world.instance.report_engine_event("Could not load the definitions.", run, error)
    world.instance.report_engine_event("The process has ended.", run)
    world.instance.report_run_failed(run)
    reason = world.rows("created")[1]["reason"]
    assert reason.endswith(" ImportError: cannot import name 'rates' from 'team.workflows'"), "what its process said"


def test_what_a_person_kills_stays_so(world: CoordinatedWorld) -> None:
    world.land("killed", 0, 1, 2)
    outlook, _ = world.tick("killed", "02:00")
    run = world.create(outlook.runs[0], "02:00")
    world.start(run)
    world.say(run, hour(0), InstanceState.SUCCEEDED, "02:00")
    world.say(run, hour(1), InstanceState.RUNNING, "02:00")
    world.instance.report_run_canceled(run)
    assert world.states("killed") == {0: "SUCCEEDED", 1: "KILLED", 2: "KILLED"}
    outlook, decision = world.tick("killed", "02:30")
    assert (outlook.runs, decision.first_open) == ((), 3)


def test_the_sensor_requests_runs_unless_somebody_else_holds_the_pipeline(world: CoordinatedWorld) -> None:
    world.land("held", 0, 1)
    repository = world.definitions("01:30").get_repository_def()
    sensor = repository.get_sensor_def("watched__coordinator")

    def tick() -> Any:
        with dg.build_sensor_context(instance=world.instance, repository_def=repository) as context:
            return sensor.evaluate_tick(context)

    with world.ledger.engine.connect() as connection:
        assert try_lock(connection, coordinator_lock("watched"))
        assert tick().skip_message == "falcon run is working on this pipeline"
        unlock(connection, coordinator_lock("watched"))
    (request,) = tick().run_requests
    assert request.run_key == "held on primary, 2013-01-01T00:00Z to 2013-01-01T01:00Z, attempt 1"
    assert request.job_name == "primary__held_job"
    assert request.tags[run_tags.NOMINAL_TIMES] == "2013-01-01T00:00Z 2013-01-01T01:00Z"
    outlook, _ = world.tick("held", "01:30")
    world.create(outlook.runs[0], "01:30")
    assert tick().skip_message == "nothing is ready; 2 instances are in runs, 0 wait"


def test_the_ledger_is_what_a_rebuild_makes_of_history(world: CoordinatedWorld) -> None:
    def everything() -> dict[str, list[Any]]:
        tables = (PROCESS_INSTANCES, FEED_INSTANCES, CONSUMED, FOLD)
        with world.ledger.engine.connect() as connection:
            return {
                table.name: list(connection.execute(select(table).order_by(*table.primary_key.columns)))
                for table in tables
            }

    world.ledger.catch_up()
    before = everything()
    assert len(before["process_instances"]) > 10
    assert world.ledger.rebuild() > 50
    assert everything() == before
    assert world.ledger.catch_up() == 0
    assert world.tick("neighbours", "04:32")[0].runs[0].launch.nominals == (hour(4),)


def test_no_run_is_started_while_the_definitions_on_disk_have_problems(world: CoordinatedWorld) -> None:
    """Each run reads them anew, and would fail and use up the retries of its instances."""
    repository = world.definitions("05:30").get_repository_def()
    sensor = repository.get_sensor_def("watched__coordinator")
    broken = world.store.root / "broken.yaml"
    broken.write_text("kind: feed\nname: half-written\n")
    try:
        with dg.build_sensor_context(instance=world.instance, repository_def=repository) as context:
            with pytest.raises(dg.Failure, match=r"no run is started: .* they were changed and have problems now:\n"):
                sensor.evaluate_tick(context)
            broken.unlink()
            sensor.evaluate_tick(context)
    finally:
        broken.unlink(missing_ok=True)
