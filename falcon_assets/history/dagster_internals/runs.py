"""What befalls runs, as Dagster's own processes say it: by methods and events of which none is public."""

from __future__ import annotations

import dagster as dg

_ENGINE_EVENTS = 20
"""So many of the last ones are looked at for an error."""


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


def error_in(event: dg.DagsterEvent) -> str:
    """The first line of the error that an event carries, of its cause where it has one; empty: there is none."""
    error = getattr(event.event_specific_data, "error", None)
    while error is not None and error.cause is not None:
        error = error.cause
    return "" if error is None else str(error.message).strip().partition("\n")[0]


def error_before(instance: dg.DagsterInstance, event: dg.DagsterEvent, run_id: str) -> str:
    """The last error that the processes of a run told before it failed, where its failure names none; else empty.

    As that of a process that cannot load the definitions: how Dagster ends such a run says nothing of it.
    """
    data = event.event_specific_data
    if error_in(event) or getattr(data, "first_step_failure_event", None):
        return ""
    found = instance.get_records_for_run(
        run_id, of_type=dg.DagsterEventType.ENGINE_EVENT, limit=_ENGINE_EVENTS, ascending=False
    )
    told = [one.event_log_entry.dagster_event for one in found.records]
    return next((error for one in told if one and (error := error_in(one))), "")


def job_of(definitions: dg.Definitions, name: str) -> dg.JobDefinition:
    """A job, to be executed in this process; the public ``get_job_def`` warns where the job is one of assets."""
    return definitions.resolve_job_def(name)
