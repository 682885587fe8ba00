"""What befalls runs, said by us: Dagster's own processes say it with these methods, of which none is public."""

from __future__ import annotations

import dagster as dg


def end_as_failed(instance: dg.DagsterInstance, run: dg.DagsterRun, why: str) -> None:
    """Ends a run that nobody executes any more."""
    instance.report_run_failed(run, why)


def end_as_canceled(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    """Ends a run that was asked to stop, and that nobody executes any more."""
    instance.report_run_canceled(run)


def ask_to_stop(instance: dg.DagsterInstance, run: dg.DagsterRun, why: str | None = None) -> None:
    """Brings a run to CANCELING: whatever ends it then, it was a cancellation, not a failure."""
    instance.report_run_canceling(run, why)


def add_tag(instance: dg.DagsterInstance, run_id: str, key: str, value: str) -> None:
    """Adds a tag to a run that there is already."""
    instance.add_run_tags(run_id, {key: value})


def job_of(definitions: dg.Definitions, name: str) -> dg.JobDefinition:
    """A job, to be executed in this process; the public ``get_job_def`` warns where the job is one of assets."""
    return definitions.resolve_job_def(name)
