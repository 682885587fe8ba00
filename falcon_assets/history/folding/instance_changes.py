"""Effects of a fact on the row of one process instance; pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from falcon_assets.history.events.process_instances import InstanceChanged, RunEnded, RunEnding
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState

OVER = (InstanceState.SUCCEEDED, InstanceState.SKIPPED, InstanceState.KILLED)
DEATHS = 5
"""Number of times in a row that the run of an instance may be killed; then the instance is taken for the cause."""
_STOPPED = (InstanceState.KILLED, InstanceState.SUSPENDED, InstanceState.WAITING)


def pending(nominal: datetime) -> InstanceRecord:
    return InstanceRecord(nominal, InstanceState.WAITING)


def taken(row: InstanceRecord, run_id: str) -> InstanceRecord:
    """Returns the row with ``run_id`` as its run, which a coordinator announced or a user started."""
    if row.queued_run == run_id:
        return replace(row, queued_run=None, run_id=run_id)
    return row if row.run_id == run_id else replace(row, run_id=run_id, attempt=row.attempt + 1)


def commanded(row: InstanceRecord, fact: InstanceChanged) -> InstanceRecord | None:
    """Returns the row after a command; None: it has no effect, as the instance ended since, or already has that state.

    A run that had the instance loses it. If there was none, a run that a coordinator planned before may be on its way:
    the command takes its attempt. An attempt that is killed before it started has no start time, not that of an
    earlier one.
    """
    if row.state in OVER and row.state is not fact.before:
        return None
    if fact.state is InstanceState.KILLED and row.state is not InstanceState.RUNNING:
        row = replace(row, started=None)
    if fact.state is InstanceState.WAITING:  # it is resumed
        if row.state is not InstanceState.SUSPENDED:
            return None
    elif row.in_flight:
        row = replace(row, queued_run=None, run_id=row.run)
    elif row.state is fact.state and row.state is not fact.before:
        return None
    else:
        row = replace(row, attempt=row.attempt + 1)
    return replace(row, state=fact.state, reason=fact.reason, reason_data=fact.reason_data, ended=fact.at)


def was_stopped(row: InstanceRecord, run_id: str) -> bool:
    """Whether a command took the instance from its run: later records of that run are ignored."""
    return row.run_id == run_id and row.queued_run != run_id and row.state in _STOPPED


def dropped(row: InstanceRecord, fact: RunEnded, began: bool) -> InstanceRecord:
    """Returns the row of an instance that its run did not start.

    Instances that another run is computing or has finished are unchanged. Otherwise: if a user killed the run, the
    instance is KILLED; if the run failed before it ``began`` any instance, it is FAILED, since it would be retried for
    ever, and if the run was killed then, that is counted; if the run was interrupted, or ended after other instances,
    it is unchanged.
    """
    row = replace(row, queued_run=None)
    is_interrupted = fact.ending is RunEnding.INTERRUPTED and (began or not fact.died)
    is_no_fault = is_interrupted or (began and fact.ending is RunEnding.FAILED)
    if is_no_fault or row.state in (InstanceState.SUCCEEDED, InstanceState.RUNNING):
        return row
    return over(replace(row, started=None) if fact.ending is RunEnding.KILLED else row, fact)


def over(row: InstanceRecord, fact: RunEnded) -> InstanceRecord:
    deaths = row.deaths + 1 if fact.died else 0
    row = replace(row, reason=fact.reason, reason_data=None, ended=fact.at, deaths=deaths)
    if fact.ending is RunEnding.INTERRUPTED and deaths < DEATHS:
        return replace(row, state=InstanceState.WAITING)
    if fact.ending is RunEnding.KILLED:
        return replace(row, state=InstanceState.KILLED)
    if fact.ending is RunEnding.INTERRUPTED:
        said = f"its run was killed {deaths} times in a row, perhaps by what it computes: {fact.reason}"
        row = replace(row, reason=said, deaths=0)
    return replace(row, state=InstanceState.FAILED, failures=row.failures + 1)
