"""Reads Dagster's instance, without changing it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType

import dagster as dg
from sqlalchemy import Engine, NullPool, create_engine
from sqlalchemy.exc import ProgrammingError

from falcon_assets.doctor.dagster_facts import MOST_RUNS, DagsterFacts, RunFacts, SensorFacts
from falcon_assets.history.dagster_internals.daemon import daemon_parts, last_tick, sensor_states
from falcon_assets.history.dagster_internals.instance_config import dagster_revision
from falcon_assets.history.dagster_internals.run_queue import count_runs, last_event, most_runs
from falcon_assets.history.platform.open_instance import open_instance
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.instances.runs.dead_runs import DeadRuns
from falcon_assets.instances.runs.run_locks import silent_runs
from falcon_assets.planning.workloads import Workload
from falcon_assets.settings import Settings

_STANDS_STILL = timedelta(minutes=1)
"""Workers give a sign of life every two seconds."""


def dagster_facts(settings: Settings, url: str, workloads: Sequence[Workload]) -> DagsterFacts:
    """Reads Dagster's instance; the runs of ``workloads`` have locks.

    Raises:
        SettingsError: the instance cannot be opened.
    """
    taking = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
    queued, working = dg.RunsFilter(statuses=[dg.DagsterRunStatus.QUEUED]), dg.RunsFilter(statuses=taking)
    engine = create_engine(url, poolclass=NullPool)
    with open_instance(settings) as instance, engine.connect() as connection:
        lost = _lost(instance, engine, workloads)
        silent = silent_runs(connection, _STANDS_STILL)
        first = instance.get_run_records(queued, limit=1, ascending=True)
        return DagsterFacts(
            daemons=daemon_parts(connection),
            sensors=[
                SensorFacts(one.name, one.is_stopped, last_tick(connection, one)) for one in sensor_states(connection)
            ],
            queued=count_runs(instance, queued),
            oldest_queued=_run(instance, first[0]) if first else None,
            at_work=count_runs(instance, working),
            places=most_runs(instance),
            runs=[
                _run(instance, one, lost, silent)
                for one in instance.get_run_records(working, limit=MOST_RUNS, ascending=True)
            ],
        )


def schema_of(url: str) -> tuple[str | None, str]:
    with create_engine(url, poolclass=NullPool).connect() as connection:
        return dagster_revision(connection)


def _lost(instance: dg.DagsterInstance, engine: Engine, workloads: Sequence[Workload]) -> set[str]:
    """The runs whose lock is free, as far as the ledger shows."""
    try:
        return set(DeadRuns(workloads).suspects(Ledger(engine, instance)))
    except ProgrammingError:  # its tables are missing, or those of another version: another check says so
        return set()


def _run(
    instance: dg.DagsterInstance,
    record: dg.RunRecord,
    lost: Collection[str] = (),
    silent: Mapping[str, timedelta] = MappingProxyType({}),
) -> RunFacts:
    run = record.dagster_run
    at = last_event(instance, run.run_id) or record.create_timestamp
    known = (run.run_id, run.job_name, run.status.value, record.create_timestamp, at)
    return RunFacts(*known, is_lost=run.run_id in lost, stands_still=silent.get(run.run_id))
