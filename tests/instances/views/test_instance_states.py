"""Random sequences of commands, time, data and runs against the states that the documentation promises.

The database, Dagster's history, the coordinator, and the locks of runs are real; only what a run computes is not.
"""

from __future__ import annotations

import uuid
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise

import dagster as dg
import hypothesis
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import text

from falcon_assets.history.dagster_internals.events import record_in_run
from falcon_assets.history.events.event_log import materialization
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.history.events.process_instances import InstanceChanged
from falcon_assets.history.mapping import asset_keys, run_tags
from falcon_assets.history.mapping.partitions import key_of
from falcon_assets.history.tables import CLOCK, FOLD, PROGRESS
from falcon_assets.instances.coordination.coordinator import Coordinator
from falcon_assets.instances.operations.rerunning import RerunOptions, rerun_instances
from falcon_assets.instances.operations.selection import CommandResult, InstanceRequest
from falcon_assets.instances.operations.stopping import kill_instances, resume_instances, suspend_instances
from falcon_assets.instances.runs.instance_claims import InstanceClaims
from falcon_assets.instances.runs.run_locks import RunLocks, run_lock
from falcon_assets.instances.views.listing import list_instances
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.instance_record import InstanceState
from tests.hours import hour
from tests.ledger.histories import Content, content, empty
from tests.properties import examples
from tests.world import World, world_of

HOURS, PARALLEL, ATTEMPTS = 6, 2, 1
DELAY, TIMEOUT = timedelta(minutes=30), timedelta(hours=3)
SPAN = "validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T06:00Z}"
ENTITIES = f"""
kind: cluster
name: primary
interfaces: {{write: {{endpoint: data/primary}}, execute: {{endpoint: "local[1]"}}}}
---
kind: feed
name: raw
frequency: hours(1)
locations: {{data: "/raw/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{{name: primary, {SPAN}}}]
---
kind: process
name: work
schedule: true
parallel: {PARALLEL}
timeout: hours(3)
retry: {{policy: periodic, delay: minutes(30), attempts: {ATTEMPTS}}}
frequency: hours(1)
clusters: [{{name: primary, {SPAN}}}]
inputs: [{{name: rows, feed: raw, start: "now(0,0)", end: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: a.sql}}
"""
S = InstanceState
NUMBERS = st.integers(0, HOURS - 1)
TABLES = "TRUNCATE event_logs, asset_keys, asset_event_tags, runs, run_tags CASCADE"


@dataclass
class Expected:
    """What the documentation says of an instance.

    Attributes:
        state: Its state; WAITING also while a run has it and has not started it.
        run: The run that has it, started or not.
        again: Whether it is to run again because somebody asked for it.
        failures: In a row, since it was asked for last.
        retry_at: When it is tried again after a failure; None: it is not.
        since: From when its timeout counts.
    """

    since: datetime
    state: InstanceState = S.WAITING
    run: str | None = None
    again: bool = False
    failures: int = 0
    retry_at: datetime | None = None

    @property
    def shown(self) -> InstanceState:
        return S.WAITING if self.again else self.state

    @property
    def waits(self) -> bool:
        """Whether it waits for whatever it needs, and no run has it."""
        return self.run is None and self.shown is S.WAITING

    def ends(self, state: InstanceState) -> None:
        self.state, self.run, self.again, self.retry_at = state, None, False, None


@dataclass
class Run:
    """A run that a coordinator planned; it computes nothing."""

    dagster: dg.DagsterRun
    slots: int
    attempts: dict[datetime, int]
    left: list[datetime]
    locks: ExitStack = field(default_factory=ExitStack)
    claims: InstanceClaims | None = None
    running: list[datetime] = field(default_factory=list)


world = world_of({"all.yaml": ENTITIES, "a.sql": "SELECT 1"})


class Commands(RuleBasedStateMachine):
    """One process, six hourly instances."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        (self.workload,) = world.store.workloads_of("work")
        self.now = parse_instant("2013-01-01T00:07Z")
        # No instance times out by what was before its process is scheduled, which the first tick sees.
        self.expected = {hour(number): Expected(max(hour(number), self.now)) for number in range(HOURS)}
        self.landed: set[datetime] = set()
        self.touched: set[datetime] = set()
        self.runs: dict[str, Run] = {}
        self.looked: list[datetime] = []

    @initialize()
    def begin(self) -> None:
        with self.world.ledger.engine.begin() as connection:
            connection.execute(text(TABLES))
        empty(self.world.ledger.engine, FOLD, CLOCK)
        self.coordinator_ticks()

    def teardown(self) -> None:
        for run in self.runs.values():
            run.locks.close()
        folded = self.projection()
        self.world.ledger.rebuild()
        assert self.projection() == folded

    # What happens by itself.

    @rule(minutes=st.sampled_from([13, 41, 71, 181]))
    def time_passes(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    @rule(number=NUMBERS)
    def data_lands(self, number: int) -> None:
        nominal = hour(number)
        if nominal in self.landed or nominal > self.now:
            return
        there = FeedInstanceAvailable("primary", "raw", nominal, "v1", self.now)
        key = asset_keys.asset_key("primary", "raw")
        self.world.instance.report_runless_asset_event(materialization(key, format_instant(nominal), there))
        self.landed.add(nominal)

    @rule()
    def coordinator_ticks(self) -> None:
        falcon = self.falcon
        outlook = Coordinator(falcon.entities, falcon.settings, falcon.entities.workloads).decide(self.world.ledger)
        assert outlook.problems == {}
        self.looked.append(self.now)
        for nominal, one in self.expected.items():
            lacks = one.waits and nominal <= self.now and nominal not in self.landed
            if lacks and self.now >= self.waited_from(one.since) + TIMEOUT:
                one.ends(S.TIMED_OUT)
                one.failures += 1
        ready = [nominal for nominal in self.expected if self.is_ready(nominal)]
        launched = [nominal for planned in outlook.runs for nominal in planned.launch.nominals]
        assert len(launched) == len(set(launched))
        assert set(launched) <= set(ready)
        free = PARALLEL - sum(run.slots for run in self.runs.values())
        assert sum(planned.launch.slots for planned in outlook.runs) <= free
        if ready and free > 0:
            assert ready[0] in launched, "FIFO: the oldest goes first"
        for planned in outlook.runs:
            run = self.world.instance.add_run(dg.DagsterRun(planned.job_name, str(uuid.uuid4()), tags=planned.tags))
            self.say(run, dg.DagsterEventType.RUN_STARTING)
            attempts = dict(zip(planned.launch.nominals, run_tags.attempts_of(planned.tags), strict=True))
            self.runs[run.run_id] = Run(run, planned.launch.slots, attempts, list(planned.launch.nominals))
            for nominal in planned.launch.nominals:
                one = self.expected[nominal]
                if one.again:
                    one.failures, one.again = 0, False
                one.run, one.state, one.retry_at = run.run_id, S.WAITING, None

    @precondition(lambda self: self.runs)
    @rule(data=st.data())
    def run_goes_on(self, data: st.DataObject) -> None:
        """It starts its next instance, or finishes one of those that it has started."""
        run = data.draw(st.sampled_from([self.runs[key] for key in sorted(self.runs)]))
        if run.claims is None:
            self.start(run)
        elif run.left and len(run.running) < run.slots and data.draw(st.booleans()):
            self.start_next(run)
        elif run.running:
            self.finish(run, data.draw(st.sampled_from(run.running)), well=data.draw(st.booleans()))
        elif run.left:
            self.start_next(run)
        if run.claims is not None and not run.left and not run.running:
            self.end(run, dg.DagsterEventType.RUN_SUCCESS)

    @precondition(lambda self: self.runs)
    @rule(data=st.data())
    def person_cancels_a_run(self, data: st.DataObject) -> None:
        run = data.draw(st.sampled_from([self.runs[key] for key in sorted(self.runs)]))
        for nominal in (*run.left, *run.running):
            one = self.expected[nominal]
            if one.run == run.dagster.run_id:
                one.ends(S.KILLED)
        self.end(run, dg.DagsterEventType.RUN_CANCELED)

    # What people command.

    @rule(number=NUMBERS)
    def kill(self, number: int) -> None:
        one = self.expected[hour(number)]
        changes = one.shown in (S.WAITING, S.RUNNING, S.SUSPENDED) or one.retry_at is not None
        self.told(kill_instances(self.falcon, asked(number)), number, changes)
        if changes:
            self.let_go(number)
            one.ends(S.KILLED)

    @rule(number=NUMBERS)
    def suspend(self, number: int) -> None:
        one = self.expected[hour(number)]
        changes = one.shown in (S.WAITING, S.RUNNING) or one.retry_at is not None
        self.told(suspend_instances(self.falcon, asked(number)), number, changes)
        if changes:
            self.let_go(number)
            one.ends(S.SUSPENDED)

    @rule(number=NUMBERS)
    def resume(self, number: int) -> None:
        one = self.expected[hour(number)]
        changes = one.shown is S.SUSPENDED
        self.told(resume_instances(self.falcon, asked(number)), number, changes)
        if changes:
            one.state, one.since = S.WAITING, max(self.now, hour(number))

    @rule(number=NUMBERS, force=st.booleans())
    def rerun(self, number: int, force: bool) -> None:
        one = self.expected[hour(number)]
        over = (S.FAILED, S.TIMED_OUT, S.KILLED, S.SUCCEEDED) if force else (S.FAILED, S.TIMED_OUT, S.KILLED)
        changes = one.shown in over
        self.told(rerun_instances(self.falcon, asked(number), RerunOptions(force=force)), number, changes)
        if changes:
            one.again, one.since, one.retry_at = True, max(self.now, hour(number)), None

    # What must hold.

    @invariant()
    def states_are_as_documented(self) -> None:
        query = InstanceQuery("work", start=hour(0), end=hour(HOURS))
        found = {one.instance: one.state for one in list_instances(self.falcon, query).items}
        due = {nominal for nominal in self.expected if nominal <= self.now}
        assert due <= set(found) <= due | self.touched
        assert found == {nominal: self.expected[nominal].shown for nominal in found}
        running = [one for one in self.expected.values() if one.state is S.RUNNING]
        assert len(running) <= PARALLEL

    # How it is done.

    def waited_from(self, since: datetime) -> datetime:
        """Nobody times out while nobody looks: what began in the last pause of a whole timeout waits from its end."""
        pauses = [(slept, woke) for slept, woke in pairwise(self.looked) if woke - slept >= TIMEOUT]
        return next((woke for slept, woke in pauses[-1:] if slept < since <= woke), since)

    @property
    def falcon(self) -> Installation:
        made = Installation(replace(self.world.settings, clock=Clock(origin=self.now)), ExitStack())
        made.__dict__.update(instance=self.world.instance, ledger=self.world.ledger, entities=self.world.store)
        return made

    def projection(self) -> Content:
        """Without what only says how far it is."""
        found = content(self.world.ledger.engine)
        return {name: rows for name, rows in found.items() if name not in (FOLD.name, PROGRESS.name)}

    def is_ready(self, nominal: datetime) -> bool:
        one = self.expected[nominal]
        if nominal > self.now or nominal not in self.landed or one.run is not None:
            return False
        return one.waits or (one.retry_at is not None and one.retry_at <= self.now)

    def told(self, result: CommandResult, number: int, changes: bool) -> None:
        assert [one.instance.instance for one in result.items] == [hour(number)]
        assert result.changed == changes
        if changes:
            self.touched.add(hour(number))

    def let_go(self, number: int) -> None:
        """The run that computes it stops with it, and says nothing more of it."""
        for run in self.runs.values():
            if hour(number) in run.running and run.claims is not None:
                run.running.remove(hour(number))
                run.claims.release(hour(number))

    def start(self, run: Run) -> None:
        self.say(run.dagster, dg.DagsterEventType.RUN_START)
        url, run_id = self.world.ledger.url, run.dagster.run_id
        locks = run.locks.enter_context(RunLocks(url, run_lock(run_id, "work", "primary"), "a simulated run"))
        run.claims = InstanceClaims("work", "primary", run_id, run.attempts, self.world.ledger, locks, print)

    def start_next(self, run: Run) -> None:
        nominal = run.left.pop(0)
        assert run.claims is not None
        is_own = self.expected[nominal].run == run.dagster.run_id
        assert (nominal not in run.claims.others([nominal])) == is_own
        if not is_own:
            return
        assert not [other for other in self.runs.values() if nominal in other.running], "it would run twice at once"
        assert run.claims.take(nominal) is None
        run.running.append(nominal)
        self.expected[nominal].state = S.RUNNING
        self.record(run, nominal, S.RUNNING)

    def finish(self, run: Run, nominal: datetime, *, well: bool) -> None:
        one = self.expected[nominal]
        self.record(run, nominal, S.SUCCEEDED if well else S.FAILED, "" if well else "so it is")
        one.ends(S.SUCCEEDED if well else S.FAILED)
        one.failures = 0 if well else one.failures + 1
        if 0 < one.failures <= ATTEMPTS:
            one.retry_at = self.now + DELAY
        run.running.remove(nominal)
        assert run.claims is not None
        run.claims.release(nominal)

    def end(self, run: Run, how: dg.DagsterEventType) -> None:
        self.say(run.dagster, how)
        run.locks.close()
        del self.runs[run.dagster.run_id]

    def say(self, run: dg.DagsterRun, kind: dg.DagsterEventType) -> None:
        self.world.instance.report_dagster_event(dg.DagsterEvent(kind.value, run.job_name, message="so"), run.run_id)

    def record(self, run: Run, nominal: datetime, state: InstanceState, reason: str = "") -> None:
        key, partition = asset_keys.workload_keys(self.workload)[0], key_of(self.workload.timeline, nominal)
        changed = InstanceChanged("work", "primary", nominal, state, self.now, reason)
        record_in_run(self.world.instance, run.dagster, self.workload.op_name)([changed.event(key, partition)])


def asked(number: int) -> InstanceRequest:
    return InstanceRequest(InstanceQuery("work", start=hour(number)))


def test_states_are_as_documented_whatever_happens(world: World) -> None:
    told = hypothesis.settings(examples(20, suppress=[HealthCheck.too_slow]), stateful_step_count=25)
    run_state_machine_as_test(lambda: Commands(world), settings=told)
