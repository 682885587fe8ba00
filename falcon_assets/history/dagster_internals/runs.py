"""Changes of runs that Dagster's own processes make, by methods and events that are not public."""

from __future__ import annotations

import dagster as dg

_ENGINE_EVENTS = 20


def end_as_failed(instance: dg.DagsterInstance, run: dg.DagsterRun, why: str) -> None:
    instance.report_run_failed(run, why)


def end_as_canceled(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    instance.report_run_canceled(run)


def ask_to_stop(instance: dg.DagsterInstance, run: dg.DagsterRun, why: str | None = None) -> None:
    """Sets a run to CANCELING: however it ends then counts as a cancellation, not as a failure."""
    instance.report_run_canceling(run, why)


def add_tag(instance: dg.DagsterInstance, run_id: str, key: str, value: str) -> None:
    instance.add_run_tags(run_id, {key: value})


def error_in(event: dg.DagsterEvent) -> str:
    """Returns the first line of an event's error, or of its root cause; empty: there is none."""
    error = getattr(event.event_specific_data, "error", None)
    while error is not None and error.cause is not None:
        error = error.cause
    return "" if error is None else str(error.message).strip().partition("\n")[0]


def error_before(instance: dg.DagsterInstance, event: dg.DagsterEvent, run_id: str) -> str:
    """Returns the last error of a run's processes, where Dagster's failure event names none; empty: there is none."""
    data = event.event_specific_data
    if error_in(event) or getattr(data, "first_step_failure_event", None):
        return ""
    found = instance.get_records_for_run(
        run_id, of_type=dg.DagsterEventType.ENGINE_EVENT, limit=_ENGINE_EVENTS, ascending=False
    )
    events = [one.event_log_entry.dagster_event for one in found.records]
    return next((error for one in events if one and (error := error_in(one))), "")


def job_of(definitions: dg.Definitions, name: str) -> dg.JobDefinition:
    """Returns a job, to be executed in this process; the public ``get_job_def`` warns about asset jobs."""
    return definitions.resolve_job_def(name)
