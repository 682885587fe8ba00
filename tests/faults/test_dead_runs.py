"""Runs that died or were deleted, and what two launchers want at once: real runs in a real history."""

from __future__ import annotations

import threading
from datetime import datetime

import dagster as dg
import pytest
from dagster._core.events import AssetObservationData

from falcon_assets.base.cancellation import Cancellation, CancelledError
from falcon_assets.history.dagster_internals.launching import to_be_started
from falcon_assets.history.dagster_internals.tags import PARENT_RUN
from falcon_assets.history.events.process_instances import InstanceChanged
from falcon_assets.history.mapping import run_tags
from falcon_assets.history.platform.interrupted_runs import cut_off, cut_off_if_unstarted
from falcon_assets.history.platform.postgres import database_url
from falcon_assets.history.queries import some_records
from falcon_assets.instances.coordination.coordinator import PlannedRun
from falcon_assets.instances.runs import dead_runs
from falcon_assets.instances.runs.dead_runs import DeadRuns, free_instances_of_deleted_runs
from falcon_assets.instances.runs.instance_claims import InstanceClaims
from falcon_assets.instances.runs.run_locks import RunLocks, run_lock
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState
from tests.builders import cluster_yaml
from tests.own_time import OwnTime
from tests.waiting import wait_until
from tests.world import World, world_of

PROCESS = """---
kind: feed
name: out-{name}
frequency: hours(1)
locations: {{data: "/out-{name}/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}}}}]
---
kind: process
name: {name}
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: "2013-01-01T03:00Z"}}}}]
frequency: hours(1)
parallel: 3
outputs: [{{name: out, feed: out-{name}, instance: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: one.sql}}
retry: {{policy: periodic, delay: minutes(10), attempts: 3}}
schedule: true
"""
NAMES = ("unstarted", "killed", "revived", "silent", "foreground", "deleted", "canceled", "raced", "repeated", "busy")
NOW, LATER = "02:30", "02:45"


class RunsWorld(World):
    """The entities and their history, some of which is made by hand."""

    def planned(self, process: str, now: str = NOW) -> list[PlannedRun]:
        return list(self.decide(now, process).runs)

    def create(self, run: PlannedRun, **tags: str) -> dg.DagsterRun:
        job = self.definitions(NOW).resolve_job_def(run.job_name)
        return self.instance.create_run_for_job(job, tags={**run.tags, **tags}, status=dg.DagsterRunStatus.NOT_STARTED)

    def say(self, run: dg.DagsterRun, kind: dg.DagsterEventType) -> None:
        self.instance.report_dagster_event(dg.DagsterEvent(kind.value, run.job_name, message="so it is"), run.run_id)

    def started(self, process: str, **tags: str) -> dg.DagsterRun:
        (planned,) = self.planned(process)
        run = self.create(planned, **tags)
        self.say(run, dg.DagsterEventType.RUN_START)
        return run

    def records(self, process: str) -> list[InstanceRecord]:
        self.ledger.catch_up()
        nominals = [parse_instant(f"2013-01-01T{hour:02}:00Z") for hour in range(3)]
        with self.ledger.engine.connect() as connection:
            found = some_records(connection, process, "primary", nominals)
        return [found[nominal] for nominal in nominals]

    def others(self, run: dg.DagsterRun) -> list[str]:
        """The runs of the same job but for one."""
        found = self.instance.get_runs(dg.RunsFilter(job_name=run.job_name))
        return [one.run_id for one in found if one.run_id != run.run_id]

    def succeed(self, run: dg.DagsterRun, process: str, nominal: datetime) -> None:
        key = dg.AssetKey(["primary", f"out-{process}"])
        done = InstanceChanged(process, "primary", nominal, InstanceState.SUCCEEDED, nominal)
        said = done.event(key, format_instant(nominal))
        kind = dg.DagsterEventType.ASSET_OBSERVATION.value
        event = dg.DagsterEvent(kind, run.job_name, event_specific_data=AssetObservationData(said))
        self.instance.report_dagster_event(event, run.run_id)

    def dead(self, process: str, *, foreground: bool = False, patience: float = 0.0) -> DeadRuns:
        return DeadRuns(self.store.workloads_of(process), foreground, patience)

    def hold(self, process: str, run: dg.DagsterRun) -> RunLocks:
        return RunLocks(database_url(self.settings), run_lock(run.run_id, process, "primary"), "a worker")

    def status(self, run: dg.DagsterRun) -> dg.DagsterRunStatus:
        found = self.instance.get_run_by_id(run.run_id)
        assert found is not None
        return found.status


TEXT = cluster_yaml() + "".join(PROCESS.format(name=name) for name in NAMES)
world = world_of({"all.yaml": TEXT, "one.sql": "SELECT 1 AS n"}, RunsWorld)


def test_a_started_run_that_nobody_holds_is_ended_and_its_instances_are_free(world: RunsWorld) -> None:
    run = world.started("killed")
    assert [record.queued_run for record in world.records("killed")] == [run.run_id] * 3
    assert world.planned("killed") == []
    assert world.dead("killed").end(world.ledger) == (run.run_id,)
    assert world.status(run) is dg.DagsterRunStatus.FAILURE
    records = world.records("killed")
    said = "its worker is gone: nobody held its lock for 0 s"
    found = [(one.state, one.queued_run, one.attempt, one.failures, one.deaths, one.reason) for one in records]
    assert found == [(InstanceState.WAITING, None, 1, 0, 1, said)] * 3
    (again,) = world.planned("killed")
    assert again.tags[run_tags.ATTEMPTS] == "2 2 2"


def test_a_run_whose_daemon_was_replaced_before_it_started_it_is_no_failure(world: RunsWorld) -> None:
    (planned,) = world.planned("unstarted")
    run = world.create(planned)
    assert to_be_started(world.instance) == []
    world.say(run, dg.DagsterEventType.RUN_STARTING)
    (left,) = to_be_started(world.instance)
    assert left.run_id == run.run_id
    cut_off_if_unstarted(world.instance, [run.run_id, "gone"])
    assert world.status(run) is dg.DagsterRunStatus.FAILURE
    assert to_be_started(world.instance) == []
    found = [(one.state, one.queued_run, one.failures, one.deaths) for one in world.records("unstarted")]
    assert found == [(InstanceState.WAITING, None, 0, 1)] * 3
    other = world.started("unstarted")
    cut_off_if_unstarted(world.instance, [other.run_id])
    assert world.status(other) is dg.DagsterRunStatus.STARTED


def test_a_run_that_was_taken_for_dead_publishes_nothing(world: RunsWorld) -> None:
    run, nominal = world.started("revived"), parse_instant("2013-01-01T00:00Z")
    with world.hold("revived", run) as locks:
        claims = InstanceClaims("revived", "primary", run.run_id, {nominal: 1}, world.ledger, locks, list[str]().append)
        assert (claims.take(nominal), claims.why_lost(nominal)) == (None, None)
        locks.sessions = 2  # the locks were nobody's for a moment
        assert claims.why_lost(nominal) is None
        cut_off(world.instance, run, "it stood still")
        assert claims.why_lost(nominal) == "it is WAITING: it stood still"
        (again,) = world.planned("revived")
        other = world.create(again)
        world.say(other, dg.DagsterEventType.RUN_START)
        given = f"it was given to the run {other.run_id}"
        assert claims.why_lost(nominal) == given
        with pytest.raises(CancelledError, match=given):
            Cancellation(lambda: claims.why_lost(nominal)).make_final()


def test_a_run_that_is_held_or_was_a_moment_ago_is_left_alone(
    world: RunsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = world.started("silent")
    with world.hold("silent", run):
        assert world.dead("silent").end(world.ledger) == ()
    patient = world.dead("silent", patience=600)
    assert patient.end(world.ledger) == ()
    assert patient.end(world.ledger) == ()
    assert world.dead("killed").end(world.ledger) == ()  # somebody else's
    assert world.status(run) is dg.DagsterRunStatus.STARTED
    own = OwnTime()
    monkeypatch.setattr(dead_runs, "time", own)
    assert world.dead("silent", patience=20).end_all(world.ledger) == (run.run_id,)
    assert 20 <= own.now < 21
    assert world.dead("silent").end_all(world.ledger) == ()


def test_a_run_of_a_killed_falcon_run_need_not_have_started(world: RunsWorld) -> None:
    (planned,) = world.planned("foreground")
    run = world.create(planned, **{run_tags.FOREGROUND: "true"})
    assert world.dead("foreground").end(world.ledger) == ()
    assert world.planned("foreground") == []
    assert world.dead("foreground", foreground=True).end_all(world.ledger) == (run.run_id,)
    # It was never queued, and was an attempt nevertheless.
    found = [(one.state, one.attempt, one.deaths) for one in world.records("foreground")]
    assert found == [(InstanceState.WAITING, 1, 1)] * 3


def test_a_run_that_is_canceled_before_it_is_queued_was_an_attempt(world: RunsWorld) -> None:
    (planned,) = world.planned("canceled")
    run = world.create(planned)
    world.instance.report_run_canceled(run, "by a person")
    records = world.records("canceled")
    assert [(one.state, one.attempt, one.queued_run) for one in records] == [(InstanceState.KILLED, 1, None)] * 3
    assert world.planned("canceled", LATER) == []


def test_instances_of_a_deleted_run_are_free(world: RunsWorld) -> None:
    chosen = world.store.workloads_of("deleted")
    run = world.started("deleted")
    world.ledger.catch_up()
    assert free_instances_of_deleted_runs(world.ledger, world.settings.now(), chosen) == 0
    world.instance.delete_run(run.run_id)
    assert world.planned("deleted") == []
    assert free_instances_of_deleted_runs(world.ledger, world.settings.now(), chosen) == 3
    records = world.records("deleted")
    assert [(one.state, one.reason) for one in records] == [(InstanceState.WAITING, "its run was deleted")] * 3
    (again,) = world.planned("deleted")
    assert again.tags[run_tags.ATTEMPTS] == "2 2 2"
    assert free_instances_of_deleted_runs(world.ledger, world.settings.now(), chosen) == 0


def messages(world: RunsWorld, run_id: str) -> list[str]:
    return [entry.user_message for entry in world.instance.all_logs(run_id) if not entry.is_dagster_event]


def test_of_two_runs_for_the_same_attempt_one_computes(world: RunsWorld) -> None:
    (planned,) = world.planned("raced")
    first = world.create(planned)
    world.say(first, dg.DagsterEventType.RUN_START)
    second = world.execute(planned, NOW)
    assert second.success
    said = messages(world, second.run_id)
    assert [line for line in said if "left alone" in line] == [
        f"raced 2013-01-01T{hour:02}:00Z is left alone: it was given to the run {first.run_id}" for hour in range(3)
    ]
    assert [(one.attempt, one.queued_run) for one in world.records("raced")] == [(1, first.run_id)] * 3


def test_an_instance_that_somebody_computes_is_waited_for(world: RunsWorld) -> None:
    (planned,) = world.planned("busy")
    person = world.create(planned, **{PARENT_RUN: "another"})
    nominals = planned.launch.nominals
    results: list[dg.ExecuteInProcessResult] = []
    with world.hold("busy", person) as hold:
        for nominal in nominals:
            assert hold.take(f"falcon instance busy primary {format_instant(nominal)}")
        running = threading.Thread(target=lambda: results.append(world.execute(planned, NOW)))
        running.start()
        said = wait_until(lambda: [line for run in world.others(person) for line in messages(world, run)])
        assert said[0].endswith(":00Z waits: another run computes it")
        for nominal in nominals:
            world.succeed(person, "busy", nominal)
    running.join(300)  # only for a machine that is very busy
    (result,) = results
    assert result.success
    left = sorted(line for line in messages(world, result.run_id) if "left alone" in line)
    assert left == [
        f"busy 2013-01-01T{hour:02}:00Z is left alone: it was given to the run {person.run_id}" for hour in range(3)
    ]
    assert [(one.state, one.run_id) for one in world.records("busy")] == [(InstanceState.SUCCEEDED, person.run_id)] * 3


@pytest.mark.soak
def test_a_repeated_run_computes_what_a_person_asked_for(world: RunsWorld) -> None:
    (planned,) = world.planned("repeated")
    first = world.execute(planned, NOW)
    assert first.success
    assert [one.run_id for one in world.records("repeated")] == [first.run_id] * 3
    again = world.execute(planned, NOW)
    assert [line for line in messages(world, again.run_id) if "left alone" in line] != []
    repeated = world.execute(planned, NOW, **{PARENT_RUN: first.run_id})
    assert [(one.state, one.run_id, one.attempt) for one in world.records("repeated")] == [
        (InstanceState.SUCCEEDED, repeated.run_id, 2)
    ] * 3
