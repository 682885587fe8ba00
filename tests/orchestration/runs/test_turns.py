"""What people say while a run is at its first instance holds for the others; what went away is waited for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy

from falcon_assets.compute.engines.computing.task import WorkflowResult, WorkflowTask
from falcon_assets.entities.definition_versions import Recorder, record_definitions
from falcon_assets.features.entities.results import Request
from falcon_assets.features.entities.status import resume_entities, suspend_entities
from falcon_assets.features.landing.collector import Collector
from falcon_assets.features.triage.operations import triage
from falcon_assets.history import queries
from falcon_assets.instances.coordination.coordinator import Coordinator, PlannedRun
from falcon_assets.instances.operations.selection import InstanceRequest
from falcon_assets.instances.operations.stopping import suspend_instances
from falcon_assets.instances.runs import instance_run
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState
from falcon_assets.settings import Settings
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.builders import cluster_yaml
from tests.world import QUIET

SPAN = "validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T06:00Z}"
PROCESS = """---
kind: process
name: {name}
clusters: [{{name: primary, {span}}}]
frequency: hours(1)
parallel: {parallel}
timeout: days(3)
{more}
workflow: {{engine: pyspark, path: work.py}}
retry: {{policy: final}}
schedule: true
"""
FEED = """---
kind: feed
name: {name}
frequency: hours(1)
availability_flag: _SUCCESS
locations: {{data: "/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{{name: primary, {span}}}]
"""
NOMINALS = [parse_instant(f"2013-01-01T{hour:02}:00Z") for hour in range(6)]
READS = 'inputs: [{{name: raw, feed: {name}-raw, start: "{window}", end: "{window}"}}]'
READERS = {"rewritten": "now(0,0)", "by-hand": "now(0,0)", "latest": "latest(0)", "ahead": "future(0,3)"}


def declared(parallel: int = 1) -> str:
    alone = [
        PROCESS.format(name=name, span=SPAN, parallel=parallel, more="")
        for name in ("held", "changed", "one", "meanwhile", "many")
    ]
    some = [
        PROCESS.format(name=name, span=SPAN, parallel=1, more=READS.format(name=name, window=window))
        + FEED.format(name=f"{name}-raw", span=SPAN)
        for name, window in READERS.items()
    ]
    return "".join([cluster_yaml(), *alone, *some])


@dataclass
class Engine:
    """Instead of Spark: calls what a test wants to happen while an instance is computed."""

    computed: list[datetime] = field(default_factory=list)
    during: Callable[[WorkflowTask], object] = lambda task: None

    def run(self, task: WorkflowTask) -> WorkflowResult:
        self.computed.append(task.nominal)
        self.during(task)
        return WorkflowResult({}, "")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    found = Engine()
    monkeypatch.setattr(instance_run, "compute_with_others", found.run)
    return found


@dataclass(frozen=True)
class World:
    """The entities and their history."""

    settings: Settings
    installation: Installation
    instance: dg.DagsterInstance

    def flag(self, process: str, hour: int) -> Path:
        return self.settings.home / f"data/primary/{process}-raw/2013-01-01/{hour:02}/_SUCCESS"

    def write(self, process: str, *hours: int) -> None:
        for hour in hours:
            flag = self.flag(process, hour)
            flag.parent.mkdir(parents=True, exist_ok=True)
            flag.with_name("part").write_text("1")
            flag.touch()

    def collect(self, process: str) -> None:
        entities = self.installation.entities
        span = {f"{process}-raw": (NOMINALS[0], NOMINALS[-1])}
        found = Collector(entities, entities.cluster("primary"), self.settings).collect(
            self.installation.ledger, 60, span
        )
        assert found.problems == {}

    def planned(self, process: str) -> list[PlannedRun]:
        store = self.installation.entities
        outlook = Coordinator(store, self.settings, store.workloads_of(process)).decide(self.installation.ledger)
        assert outlook.problems == {}
        return list(outlook.runs)

    def execute(self, process: str) -> dg.ExecuteInProcessResult:
        """The run that a coordinator plans."""
        (run,) = self.planned(process)
        return self.run(run.job_name, run.tags)

    def by_hand(self, process: str, hour: int) -> dg.ExecuteInProcessResult:
        key = format_instant(NOMINALS[hour])
        tags = {"dagster/asset_partition_range_start": key, "dagster/asset_partition_range_end": key}
        return self.run(f"primary__{process.replace('-', '_')}_job", tags)

    def run(self, job_name: str, tags: Mapping[str, str]) -> dg.ExecuteInProcessResult:
        job = definitions_of(self.installation.entities, self.settings).resolve_job_def(job_name)
        return job.execute_in_process(instance=self.instance, tags=tags, run_config=QUIET, raise_on_error=False)

    def records(self, process: str) -> list[InstanceRecord]:
        self.installation.ledger.catch_up()
        with self.installation.ledger.engine.connect() as connection:
            found = queries.some_records(connection, process, "primary", NOMINALS)
        return [found[nominal] for nominal in sorted(found)]

    def available(self, process: str) -> list[int]:
        self.installation.ledger.catch_up()
        key = ("primary", f"{process}-raw")
        with self.installation.ledger.engine.connect() as connection:
            found = queries.available(connection, {key: (NOMINALS[0], NOMINALS[-1])}).get(key, set())
        return sorted(one.hour for one in found)


@pytest.fixture
def world(
    settings: Settings, instance: dg.DagsterInstance, write_entities: Callable[[dict[str, str]], Path]
) -> Iterator[World]:
    root = write_entities({"all.yaml": declared(), "work.py": "def run(spark, inputs, instance):\n    pass\n"})
    at = replace(settings, entity_defs=root, clock=Clock(origin=parse_instant("2013-01-01T06:30Z")))
    with open_installation(at) as opened:
        yield World(at, opened, instance)


def step_failure(result: dg.ExecuteInProcessResult) -> str:
    (event,) = [one for one in result.all_events if one.is_step_failure]
    told = event.step_failure_data.user_failure_data
    assert told is not None
    return told.description or ""


def test_a_process_that_is_suspended_meanwhile_begins_with_no_other_instance(world: World, engine: Engine) -> None:
    engine.during = lambda task: suspend_entities(world.installation, Request(("held",)))
    assert world.execute("held").success
    assert engine.computed == NOMINALS[:1]
    waiting = (InstanceState.WAITING, 0, None, "process held is suspended")
    first, *others = world.records("held")
    assert first.state is InstanceState.SUCCEEDED
    assert [(one.state, one.failures, one.queued_run, one.reason) for one in others] == [waiting] * 5
    assert world.planned("held") == []
    resume_entities(world.installation, Request(("held",)))
    engine.during = lambda task: None
    assert world.execute("held").success
    assert engine.computed == NOMINALS


def test_a_definition_that_is_changed_meanwhile_holds_for_the_other_instances(
    world: World, engine: Engine, write_entities: Callable[[dict[str, str]], Path]
) -> None:
    """As a lower ``parallel``, or an earlier end."""

    def change(task: WorkflowTask) -> None:
        root = write_entities({"all.yaml": declared(parallel=2)})
        record_definitions(world.installation.ledger.engine, root, world.settings.now(), Recorder("a person"))

    engine.during = change
    assert world.execute("changed").success
    assert engine.computed == NOMINALS[:1]
    reason = "process changed was changed after its run began: a later run checks it again"
    waiting = (InstanceState.WAITING, 0, reason)
    assert [(one.state, one.failures, one.reason) for one in world.records("changed")[1:]] == [waiting] * 5
    engine.during = lambda task: None
    assert world.execute("changed").success
    assert engine.computed == NOMINALS


def test_an_instance_that_is_suspended_a_moment_before_its_turn_does_not_run(world: World, engine: Engine) -> None:
    def suspend(task: WorkflowTask) -> None:
        if task.nominal == NOMINALS[0]:
            query = InstanceQuery("one", start=NOMINALS[1])
            assert suspend_instances(world.installation, InstanceRequest(query, reason="so said")).changed == 1

    engine.during = suspend
    assert world.execute("one").success
    assert engine.computed == [NOMINALS[0], *NOMINALS[2:]]
    assert world.records("one")[1].state is InstanceState.SUSPENDED


def test_an_instance_that_somebody_computed_meanwhile_is_left_alone(world: World, engine: Engine) -> None:
    """It was not waited for: its lock was free before its turn, and free at its turn."""

    def compute(task: WorkflowTask) -> None:
        engine.during = lambda task: None
        assert world.by_hand("meanwhile", 3).success

    engine.during = compute
    assert world.execute("meanwhile").success
    assert engine.computed == [NOMINALS[0], NOMINALS[3], *NOMINALS[1:3], *NOMINALS[4:]]


def test_it_asks_for_many_instances_together(world: World, engine: Engine) -> None:
    asked: list[str] = []

    def note(connection: object, cursor: object, statement: str, *rest: object) -> None:
        if "definition_versions" in statement and "entity_status" in statement and "max(" in statement:
            asked.append("turn")
        elif "FROM falcon.process_instances" in statement and "nominal IN" in statement:
            asked.append("instance")

    sqlalchemy.event.listen(sqlalchemy.Engine, "before_cursor_execute", note)
    try:
        assert world.execute("many").success
    finally:
        sqlalchemy.event.remove(sqlalchemy.Engine, "before_cursor_execute", note)
    assert engine.computed == NOMINALS
    assert asked.count("turn") < len(NOMINALS)
    assert asked.count("instance") < len(NOMINALS) + 2  # at their turns, and a look at all of them each second


@pytest.mark.parametrize("process", ["rewritten", "latest", "ahead"])
def test_an_input_that_is_being_rewritten_is_waited_for(world: World, engine: Engine, process: str) -> None:
    """Its producer removes the flag, writes, and sets it again, while ``timeout`` is three days."""
    world.write(process, 0)
    world.collect(process)
    (planned,) = world.planned(process)
    flag = world.flag(process, 0)
    flag.unlink()
    assert not world.run(planned.job_name, planned.tags).success
    assert engine.computed == []
    assert world.available(process) == []
    (record, *_) = world.records(process)
    assert (record.state, record.failures) == (InstanceState.WAITING, 0)
    assert world.planned(process) == []
    (lacking,) = triage(world.installation, process, NOMINALS[0]).cause.causes
    assert str(lacking.reason).startswith("has come, and is not complete: "), lacking
    flag.touch()
    world.collect(process)
    assert world.available(process) == [0]
    assert world.execute(process).success
    assert engine.computed[0] == NOMINALS[0]
    assert world.records(process)[0].state is InstanceState.SUCCEEDED


def test_who_runs_an_instance_by_hand_hears_what_it_waits_for(world: World, engine: Engine) -> None:
    world.write("by-hand", 1)
    world.collect("by-hand")
    world.flag("by-hand", 1).unlink()
    result = world.by_hand("by-hand", 1)
    assert not result.success
    assert "by-hand on primary at 2013-01-01T01:00Z waits for 1 input instance(s):" in step_failure(result)
    (record,) = world.records("by-hand")
    assert (record.state, record.failures) == (InstanceState.WAITING, 0)
    assert world.available("by-hand") == []
    world.flag("by-hand", 1).touch()
    assert world.by_hand("by-hand", 1).success
    assert engine.computed == [NOMINALS[1]]
