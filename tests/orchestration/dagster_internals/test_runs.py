"""What we say of runs is what Dagster's own processes say of them."""

from __future__ import annotations

import dagster as dg
import pytest

from falcon_assets.history.dagster_internals import runs


@dg.op
def nothing() -> None:
    """Makes a run of a job."""


@dg.job
def does_nothing() -> None:
    nothing()


@dg.asset
def made() -> None:
    """Makes a job of assets."""


@pytest.fixture
def run(instance: dg.DagsterInstance) -> dg.DagsterRun:
    return instance.create_run_for_job(does_nothing, status=dg.DagsterRunStatus.STARTED)


def state(instance: dg.DagsterInstance, run: dg.DagsterRun) -> dg.DagsterRunStatus:
    found = instance.get_run_by_id(run.run_id)
    assert found is not None
    return found.status


def test_a_run_ends_as_failed(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    runs.end_as_failed(instance, run, "its worker is gone")
    assert state(instance, run) is dg.DagsterRunStatus.FAILURE, (
        "Dagster's report_run_failed does not end a run any more"
    )
    said = [entry.dagster_event.message for entry in instance.all_logs(run.run_id) if entry.dagster_event]
    assert "its worker is gone" in said, "Dagster's report_run_failed does not record the reason any more"


def test_a_run_is_asked_to_stop_and_ends_as_canceled(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    runs.ask_to_stop(instance, run, "the daemon ends")
    assert state(instance, run) is dg.DagsterRunStatus.CANCELING, (
        "Dagster's report_run_canceling does not bring a run to CANCELING any more: it would end as failed"
    )
    runs.end_as_canceled(instance, run)
    assert state(instance, run) is dg.DagsterRunStatus.CANCELED, (
        "Dagster's report_run_canceled does not end a run any more"
    )


def test_a_tag_is_added_to_a_run(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    runs.add_tag(instance, run.run_id, "falcon/interrupted", "by whom")
    found = instance.get_run_by_id(run.run_id)
    assert found is not None
    assert found.tags.get("falcon/interrupted") == "by whom", "Dagster's add_run_tags does not tag a run any more"
    assert instance.get_run_records(dg.RunsFilter(tags={"falcon/interrupted": "by whom"})) != []


def test_a_job_of_assets_is_resolved(recwarn: pytest.WarningsRecorder) -> None:
    job = runs.job_of(dg.Definitions(assets=[made], jobs=[dg.define_asset_job("making", [made])]), "making")
    assert isinstance(job, dg.JobDefinition), "Dagster's resolve_job_def does not resolve a job of assets any more"
    assert [str(one.message) for one in recwarn] == [], "Dagster warns of resolve_job_def: look for its successor"
