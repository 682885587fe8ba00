"""What nobody foresaw stops one process in the foreground, and not the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import select

from falcon_assets.catalog.store import EntityStore, load_entities
from falcon_assets.compute.spark.sessions import stop_sessions
from falcon_assets.entities.status import statuses
from falcon_assets.history.folding.instance_changes import DEATHS
from falcon_assets.history.mapping import run_tags
from falcon_assets.history.platform.open_ledger import Ledger, open_ledger
from falcon_assets.history.tables import SLA_BREACHES
from falcon_assets.instances.coordination.coordinator import Coordinator
from falcon_assets.instances.outbox.recording import EventRecording
from falcon_assets.instances.runs import dead_runs
from falcon_assets.instances.runs.dead_runs import DeadRuns
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.settings import Settings
from falcon_assets.surface.dagster.code_location import definitions_of
from falcon_assets.surface.foreground.foreground import Foreground, ForegroundResult
from falcon_assets.surface.foreground.foreground_runs import Display

ENTITIES = """
kind: cluster
name: primary
interfaces: {write: {endpoint: data/primary}, execute: {endpoint: "local[1]"}}
properties: {spark.sql.shuffle.partitions: "1", spark.driver.memory: 512m}
"""
PROCESS = """---
kind: process
name: {name}
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: 2013-01-01T02:00Z}}}}]
frequency: hours(1)
workflow: {{engine: pyspark, path: work.py}}
retry: {{policy: final}}
schedule: true
"""


@dg.op
def fails() -> None:
    raise LookupError("nobody foresaw it")


@dg.job
def primary__breaks_job() -> None:
    fails()


@pytest.fixture(scope="module")
def outcome(
    settings: Settings, instance: dg.DagsterInstance, write_entities: Callable[[dict[str, str]], Path]
) -> Iterator[ForegroundResult]:
    """Of ``breaks``, whose op raises what it should not, ``gone``, which has no job, and ``works``, in this order."""
    declared = "".join(PROCESS.format(name=name) for name in ("breaks", "gone", "works"))
    root = write_entities({"all.yaml": ENTITIES + declared, "work.py": "def run(spark, inputs, instance):\n    pass\n"})
    store = load_entities(root)
    built = definitions_of(store, settings)
    others = [job for job in built.jobs or () if job.name not in ("primary__breaks_job", "primary__gone_job")]
    definitions = dg.Definitions(
        assets=built.assets, jobs=[*others, primary__breaks_job], resources=built.resources, executor=built.executor
    )
    display = Display(*[lambda *told: None] * 5)
    foreground = Foreground(
        store, settings, definitions, open_ledger(settings, instance), display, lambda cluster: None
    )
    yield foreground.run(store.workloads, None)
    stop_sessions()


def test_the_others_go_on(outcome: ForegroundResult) -> None:
    assert outcome.succeeded == 2


def test_the_instances_failed_and_are_recorded(outcome: ForegroundResult) -> None:
    assert [(one.process, one.nominal.hour, one.state) for one in outcome.trouble] == [
        ("breaks", 0, InstanceState.FAILED),
        ("breaks", 1, InstanceState.FAILED),
    ]
    assert all("nobody foresaw it" in one.reason for one in outcome.trouble), outcome.trouble


def test_what_leaves_no_run_behind_is_left_out_and_named(outcome: ForegroundResult) -> None:
    assert outcome.left_out.keys() == {"the job primary__gone_job"}
    assert outcome.left_out["the job primary__gone_job"].startswith("it cannot be started (")


SLA = """---
kind: feed
name: raw
frequency: hours(1)
availability_flag: _SUCCESS
locations: {data: "/raw/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
sla: {low: hours(1), high: hours(2)}
notification: {on: [SLA], to: [{url: {env: HOOK}}]}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T02:00Z}}]
schedule: true
---
kind: process
name: reads
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T02:00Z}}]
frequency: hours(1)
inputs: [{name: raw, feed: raw, start: "now(0,0)", end: "now(0,0)"}]
workflow: {engine: pyspark, path: work.py}
schedule: true
"""


def test_it_records_breaches_of_slas_and_tells_dagster(
    settings: Settings, instance: dg.DagsterInstance, write_entities: Callable[[dict[str, str]], Path]
) -> None:
    root = write_entities({"all.yaml": ENTITIES + SLA, "work.py": "def run(spark, inputs, instance):\n    pass\n"})
    store, ledger = load_entities(root), open_ledger(settings, instance)
    with ledger.engine.begin() as connection:
        statuses(connection, store.feeds.values(), parse_instant("2013-01-01T00:00Z"))
    display = Display(*[lambda *told: None] * 5)
    foreground = Foreground(store, settings, definitions_of(store, settings), ledger, display, lambda cluster: None)
    assert foreground.run(store.workloads, None).is_whole
    with ledger.engine.connect() as connection:
        levels = connection.execute(select(SLA_BREACHES.c.level).where(SLA_BREACHES.c.entity == "raw")).scalars().all()
    assert sorted(levels) == ["high", "high", "low", "low"]
    key = dg.AssetCheckKey(dg.AssetKey(["primary", "raw"]), "sla")
    (told,) = instance.event_log_storage.get_latest_asset_check_execution_by_key([key]).values()
    assert told.status.value == "FAILED"
    # The first tick of a daemon that has never run tells people of them.
    assert EventRecording(store, settings).record(ledger, datetime.now(UTC)) == 4


def test_what_failed_with_a_run_that_was_killed_again_and_again_is_no_success(
    settings: Settings,
    instance: dg.DagsterInstance,
    write_entities: Callable[[dict[str, str]], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With ``retry: final`` nothing else is left to do."""
    monkeypatch.setattr(dead_runs, "RETAKEN_WITHIN_SECONDS", 0)
    root = write_entities({"all.yaml": ENTITIES + PROCESS.format(name="deadly"), "work.py": "def run(*told): pass\n"})
    store, ledger = load_entities(root), open_ledger(settings, instance)
    display = Display(*[lambda *told: None] * 5)
    definitions = definitions_of(store, settings)
    foreground = Foreground(store, settings, definitions, ledger, display, lambda cluster: None)
    for _ in range(DEATHS - 1):
        run = begun(store, settings, ledger, definitions)
        DeadRuns(store.workloads, foreground=True, patience=0).end_all(ledger)
        assert run.job_name == "primary__deadly_job"
    begun(store, settings, ledger, definitions)
    outcome = foreground.run(store.workloads, None)
    assert (outcome.succeeded, [one.state for one in outcome.trouble]) == (0, [InstanceState.FAILED] * 2)
    assert not outcome.is_whole
    assert all(one.reason.startswith("its run was killed 5 times in a row") for one in outcome.trouble)


def test_what_a_run_of_the_daemon_had_is_computed_when_that_is_deleted_meanwhile(
    settings: Settings, instance: dg.DagsterInstance, write_entities: Callable[[dict[str, str]], Path]
) -> None:
    declared = "".join(PROCESS.format(name=name) for name in ("lost", "kept"))
    root = write_entities({"all.yaml": ENTITIES + declared, "work.py": "def run(spark, inputs, instance):\n    pass\n"})
    store, ledger = load_entities(root), open_ledger(settings, instance)
    definitions = definitions_of(store, settings)
    (planned,) = Coordinator(store, settings, store.workloads_of("lost")).decide(ledger).runs
    job, status = definitions.resolve_job_def(planned.job_name), dg.DagsterRunStatus.NOT_STARTED
    lost = instance.create_run_for_job(job, tags={**planned.tags}, status=status)
    starts = dg.DagsterEvent(dg.DagsterEventType.RUN_STARTING.value, planned.job_name, message="starts")
    instance.report_dagster_event(starts, lost.run_id)
    told = [lambda *told: None] * 3
    display = Display(told[0], lambda run: instance.delete_run(lost.run_id), *told)
    outcome = Foreground(store, settings, definitions, ledger, display, lambda cluster: None).run(store.workloads, None)
    assert (outcome.succeeded, outcome.is_whole) == (4, True)


def begun(store: EntityStore, settings: Settings, ledger: Ledger, definitions: dg.Definitions) -> dg.DagsterRun:
    """A run of a ``falcon run`` whose process is gone."""
    (planned,) = Coordinator(store, settings, store.workloads).decide(ledger).runs
    tags = {**planned.tags, run_tags.FOREGROUND: "true"}
    job = definitions.resolve_job_def(planned.job_name)
    return ledger.instance.create_run_for_job(job, tags=tags, status=dg.DagsterRunStatus.NOT_STARTED)
