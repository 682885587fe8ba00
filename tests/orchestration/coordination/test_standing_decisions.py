"""Deciding only on what has changed comes to the decisions that deciding on everything does, whatever happens."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import dagster as dg
import hypothesis
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from sqlalchemy import Connection, Engine, text

from falcon_assets.entities.status import Command, apply_command
from falcon_assets.errors import EntityStatusError
from falcon_assets.features.late.sensors import LateArrivalHandler
from falcon_assets.history import queries
from falcon_assets.history.dagster_internals.events import record_in_run
from falcon_assets.history.events.event_log import materialization, observation
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable, FeedInstanceEvicted
from falcon_assets.history.events.inputs import Consumption
from falcon_assets.history.events.process_instances import InstanceChanged
from falcon_assets.history.mapping import asset_keys, run_tags
from falcon_assets.history.mapping.partitions import key_of
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.history.tables import CLOCK, FOLD
from falcon_assets.instances.coordination.coordinator import Coordinator, PlannedRun
from falcon_assets.instances.coordination.standing_decisions import StandingDecisions
from falcon_assets.instances.operations.rerunning import RerunOptions, rerun_instances
from falcon_assets.instances.operations.selection import InstanceRequest
from falcon_assets.instances.operations.stopping import kill_instances, resume_instances, suspend_instances
from falcon_assets.instances.rules.situation import Decision
from falcon_assets.instances.rules.standing import Waits
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.planning.workloads import Workload
from tests.builders import cluster_yaml
from tests.hours import hour
from tests.ledger.histories import empty
from tests.orchestration.replication_world import feed, on
from tests.properties import examples
from tests.world import World, world_of

HOURS = 5
PROCESS = """---
kind: process
name: {name}
pipelines: [{pipeline}]
clusters: [{{name: {cluster}, validity: {{start: 2013-01-01T00:00Z, end: 2013-01-01T05:00Z}}}}]
frequency: hours(1)
outputs: [{{name: out, feed: {made}, instance: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: a.sql}}
schedule: true
"""
INPUT = '{{name: {0}, feed: {0}, start: "now({1},0)", end: "now(0,0)"{2}}}'
BEFORE = '{name: before, feed: chain, start: "now(-1,0)", end: "now(-1,0)"}'


def process(name: str, pipeline: str, made: str, *inputs: str, more: str = "", cluster: str = "east") -> str:
    read = f"inputs: [{', '.join(inputs)}]\n"
    return PROCESS.format(name=name, pipeline=pipeline, made=made, cluster=cluster) + read + more


LATE = "late_process: {policy: backoff, delay: minutes(30), inputs: [{input: raw}]}\n"
RETRY = "retry: {policy: periodic, delay: minutes(30), attempts: 1}\n"
FEEDS = ("raw", "other", "clean", "side", "sums", "newest", "chain", "far")
ENTITIES = "".join(
    [
        cluster_yaml("east"),
        cluster_yaml("west"),
        *(feed(name, on("east", "source")) for name in FEEDS if name not in ("clean", "far")),
        feed("clean", on("east", "source"), on("west", "target")),
        feed("far", on("west", "source")),
        process("cleans", "first", "clean", INPUT.format("raw", 0, ""), more=f"timeout: hours(2)\n{LATE}{RETRY}"),
        process("sides", "first", "side", INPUT.format("other", 0, ""), more="timeout: hours(1)\nparallel: 2\n"),
        process(
            *("adds", "second", "sums", INPUT.format("clean", 0, ""), INPUT.format("side", -1, ", optional: true")),
            more="timeout: hours(1)\nparallel: 2\n",
        ),
        process("last", "second", "newest", INPUT.format("clean", 0, ""), more="order: LAST_ONLY\ntimeout: hours(9)\n"),
        process("chains", "second", "chain", BEFORE, INPUT.format("side", 0, "")),
        process("reads", "second", "far", INPUT.format("clean", -1, ""), more="timeout: hours(3)\n", cluster="west"),
    ]
)
SCHEDULED = ("cleans", "sides", "adds", "last", "chains", "reads")
NUMBERS, PROCESSES = st.integers(0, HOURS - 1), st.sampled_from(SCHEDULED)
TABLES = "TRUNCATE event_logs, asset_keys, asset_event_tags, runs, run_tags CASCADE"
S = InstanceState

world = world_of({"all.yaml": ENTITIES, "a.sql": "SELECT 1"})


class Forgetful(Coordinator):
    """Records nothing of what it decides."""

    def _events(self, *about: Any) -> Iterator[Any]:
        return iter(())


@dataclass(frozen=True)
class Rolled:
    """An engine whose transactions leave nothing."""

    engine: Engine

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        with self.engine.connect() as connection:
            yield connection
            connection.rollback()

    connect = begin


class Untouched(Ledger):
    """The ledger as it is."""

    def catch_up(self) -> int:
        return 0


class Happenings(RuleBasedStateMachine):
    """Two pipelines on two clusters; each tick is compared with a coordinator that knows nothing yet."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.now = parse_instant("2013-01-01T00:07Z")
        self.decided: dict[str, dict[tuple[str, str], Decision]] = {}
        self.standing: dict[str, StandingDecisions] = {}
        self.planned: list[PlannedRun] = []
        self.runs: dict[str, dg.DagsterRun] = {}

    @initialize()
    def begin(self) -> None:
        with self.world.ledger.engine.begin() as connection:
            connection.execute(text(TABLES))
        empty(self.world.ledger.engine, FOLD, CLOCK)
        self.code_server_starts()

    @rule()
    def code_server_starts(self) -> None:
        for pipeline in ("first", "second"):
            self.standing[pipeline] = StandingDecisions(self.coordinator(Coordinator, pipeline))
            self.decided[pipeline] = {}

    @rule(minutes=st.sampled_from([1, 13, 41, 71, 181]))
    def time_passes(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    @rule(name=st.sampled_from(["raw", "other", "clean", "side"]), number=NUMBERS, version=st.sampled_from("ab"))
    def data_lands(self, name: str, number: int, version: str) -> None:
        there = FeedInstanceAvailable("east", name, hour(number), version, self.now)
        self.say_of("east", name, number, materialization, there)

    @rule(name=st.sampled_from(["raw", "clean"]), number=NUMBERS)
    def retention_evicts(self, name: str, number: int) -> None:
        self.say_of(
            "east", name, number, observation, FeedInstanceEvicted("east", name, hour(number), "delete", self.now)
        )

    @rule()
    def collectors_look(self) -> None:
        with self.world.ledger.engine.begin() as connection:
            queries.set_last_collected(connection, "east", dict.fromkeys(FEEDS, self.now))

    @rule()
    def late_arrival_ticks(self) -> None:
        LateArrivalHandler(lambda: self.now, self.world.store.workloads).decide(self.world.ledger)

    @precondition(lambda self: self.planned)
    @rule()
    def daemon_launches(self) -> None:
        for planned in self.planned:
            known = {one.tags["key"] for one in self.runs.values()}
            if planned.run_key not in known:
                tags = {**planned.tags, "key": planned.run_key}
                run = self.world.instance.add_run(dg.DagsterRun(planned.job_name, str(uuid.uuid4()), tags=tags))
                self.runs[run.run_id] = run
        self.planned = []

    @precondition(lambda self: self.runs)
    @rule(data=st.data(), state=st.sampled_from([S.RUNNING, S.SUCCEEDED, S.FAILED]))
    def run_goes_on(self, data: st.DataObject, state: InstanceState) -> None:
        run = self.any_run(data)
        self.tell(run, dg.DagsterEventType.RUN_STARTING)
        workload = self.workload_of(run)
        nominal = data.draw(st.sampled_from(run_tags.nominals_of(run.tags)))
        read = {one.name: (Consumption(one.feed, nominal, "a", workload.reads_on),) for one in workload.inputs}
        changed = InstanceChanged(
            *(workload.name, workload.cluster, nominal, state, self.now, ""),
            inputs=read if state is S.SUCCEEDED else None,
        )
        key, partition = asset_keys.workload_keys(workload)[0], key_of(workload.timeline, nominal)
        events: list[Any] = [changed.event(key, partition)]
        if state is S.SUCCEEDED:
            made = workload.outputs[0].feed
            there = FeedInstanceAvailable(
                workload.cluster, made, nominal, "m", self.now, process=workload.name, nominal=nominal
            )
            events.append(materialization(key, partition, there))
        record_in_run(self.world.instance, run, workload.op_name)(events)

    @precondition(lambda self: self.runs)
    @rule(data=st.data(), how=st.sampled_from(["RUN_SUCCESS", "RUN_FAILURE", "RUN_CANCELED", "delete"]))
    def run_is_over(self, data: st.DataObject, how: str) -> None:
        run = self.any_run(data)
        del self.runs[run.run_id]
        if how == "delete":
            self.world.instance.delete_run(run.run_id)
        else:
            self.tell(run, dg.DagsterEventType[how])

    @rule(name=PROCESSES, what=st.sampled_from(Command))
    def person_commands_an_entity(self, name: str, what: Command) -> None:
        with ExitStack() as stack:
            connection = stack.enter_context(self.world.ledger.engine.begin())
            try:
                apply_command(connection, self.world.store.process(name), what, self.now)
            except EntityStatusError:
                connection.rollback()
                stack.pop_all()
                connection.close()

    @rule(name=PROCESSES, number=NUMBERS, what=st.sampled_from([kill_instances, suspend_instances, resume_instances]))
    def person_commands_an_instance(self, name: str, number: int, what: Callable[..., Any]) -> None:
        what(self.falcon, InstanceRequest(InstanceQuery(name, start=hour(number))))

    @rule(name=PROCESSES, number=NUMBERS, force=st.booleans())
    def person_asks_for_a_rerun(self, name: str, number: int, force: bool) -> None:
        request = InstanceRequest(InstanceQuery(name, start=hour(number)))
        rerun_instances(self.falcon, request, RerunOptions(force=force))

    @rule(pipeline=st.sampled_from(["first", "second"]))
    def coordinator_ticks(self, pipeline: str) -> None:
        ledger, standing = self.world.ledger, self.standing[pipeline]
        object.__setattr__(standing.coordinator, "settings", self.settings)
        ledger.catch_up()
        everything = self.coordinator(Forgetful, pipeline).decide(Untouched(Rolled(ledger.engine), ledger.instance))  # type: ignore[arg-type]
        if not standing.is_quiet(ledger.engine):
            outlook = standing.tick(ledger)
            assert outlook.problems == {}
            self.decided[pipeline].update(outlook.decisions)
            self.planned = [*outlook.runs]
            assert [one.run_key for one in outlook.runs] == [one.run_key for one in everything.runs]
        assert {key: told(one) for key, one in self.decided[pipeline].items()} == {
            key: told(one) for key, one in everything.decisions.items()
        }
        assert {key: one.waits for key, one in standing.standing.items()} == {
            key: Waits.of(one) for key, one in everything.decisions.items()
        }

    # How it is done.

    def coordinator(self, kind: type[Coordinator], pipeline: str) -> Coordinator:
        return kind(self.world.store, self.settings, self.of(pipeline))

    def of(self, pipeline: str) -> Sequence[Workload]:
        return [one for one in self.world.store.workloads if one.pipelines[0] == pipeline]

    @property
    def settings(self) -> Any:
        return replace(self.world.settings, clock=Clock(origin=self.now))

    @property
    def falcon(self) -> Installation:
        made = Installation(self.settings, ExitStack())
        made.__dict__.update(instance=self.world.instance, ledger=self.world.ledger, entities=self.world.store)
        return made

    def any_run(self, data: st.DataObject) -> dg.DagsterRun:
        return data.draw(st.sampled_from([self.runs[key] for key in self.runs]))

    def workload_of(self, run: dg.DagsterRun) -> Workload:
        found = self.world.store.workload(run.tags[run_tags.PROCESS], run.tags[run_tags.CLUSTER])
        assert found is not None
        return found

    def tell(self, run: dg.DagsterRun, kind: dg.DagsterEventType) -> None:
        self.world.instance.report_dagster_event(dg.DagsterEvent(kind.value, run.job_name, message="so"), run.run_id)

    def say_of(self, cluster: str, name: str, number: int, kind: Callable[..., Any], record: Any) -> None:
        key = asset_keys.asset_key(cluster, name)
        self.world.instance.report_runless_asset_event(kind(key, format_instant(hour(number)), record))


def told(decision: Decision) -> Any:
    """What of a decision people see, and what is done."""
    reasons = (decision.waiting.items(), decision.timed_out, decision.skipped)
    return (decision.launches, *(sorted((nominal, str(why)) for nominal, why in one) for one in reasons))


def test_what_is_decided_is_what_deciding_on_everything_decides(world: World) -> None:
    told = hypothesis.settings(examples(40, suppress=[HealthCheck.too_slow]), stateful_step_count=30)
    run_state_machine_as_test(lambda: Happenings(world), settings=told)
