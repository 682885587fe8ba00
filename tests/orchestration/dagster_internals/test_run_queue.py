"""What Dagster says of its queue, and of its schema."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import dagster as dg
import sqlalchemy

from falcon_assets.history.dagster_internals.instance_config import dagster_revision
from falcon_assets.history.dagster_internals.run_queue import count_runs, last_event, most_runs
from falcon_assets.settings import Settings


def test_runs_that_may_work_at_once(instance: dg.DagsterInstance) -> None:
    assert most_runs(instance) == 2  # what dagster.yaml says
    with dg.DagsterInstance.ephemeral() as other:
        assert most_runs(other) is None


def test_runs_and_their_last_events(instance: dg.DagsterInstance) -> None:
    started = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])
    before = count_runs(instance, started)
    run = dg.DagsterRun(job_name="a", status=dg.DagsterRunStatus.STARTED)
    instance.run_storage.add_run(run)
    assert count_runs(instance, started) == before + 1
    assert last_event(instance, run.run_id) is None
    instance.report_engine_event("so it is", run)
    at = last_event(instance, run.run_id)
    assert at is not None
    assert abs(datetime.now(UTC) - at) < timedelta(minutes=10)


def test_tables_that_are_new_are_those_that_dagster_needs(instance: dg.DagsterInstance, settings: Settings) -> None:
    engine = sqlalchemy.create_engine(settings.database_url or "", poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        found, needed = dagster_revision(connection)
    assert found == needed
