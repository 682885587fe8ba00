"""What a fact does to the row of one process instance; pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from falcon_assets.history.events.process_instances import InstanceChanged, RunEnded, RunEnding
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState

OVER = (InstanceState.SUCCEEDED, InstanceState.SKIPPED, InstanceState.KILLED)
"""States in which an instance has come to its end."""
DEATHS = 5
"""So often in a row the run of an instance may be killed: after that it is taken for what kills it."""
_STOPPED = (InstanceState.KILLED, InstanceState.SUSPENDED, InstanceState.WAITING)


def pending(nominal: datetime) -> InstanceRecord:
    """An instance that nobody has said anything of."""
    return InstanceRecord(nominal, InstanceState.WAITING)


def taken(row: InstanceRecord, run_id: str) -> InstanceRecord:
    """The row in the hands of a run: it was announced by a coordinator, or started by a person."""
    if row.queued_run == run_id:
        return replace(row, queued_run=None, run_id=run_id)
    return row if row.run_id == run_id else replace(row, run_id=run_id, attempt=row.attempt + 1)


def commanded(row: InstanceRecord, fact: InstanceChanged) -> InstanceRecord | None:
    """The row after a command; None: the instance came to an end since the command found it, or it is so already.

    A run that had it in hand has it no more. Where none had, one may be on its way that a coordinator planned before:
    the command takes its attempt. An attempt that is killed before it started has no start: that of an earlier one is
    not its own.
    """
    if row.state in OVER and row.state is not fact.before:
        return None
    if fact.state is InstanceState.KILLED and row.state is not InstanceState.RUNNING:
        row = replace(row, started=None)
    if fact.state is InstanceState.WAITING:  # it is resumed
        if row.state is not InstanceState.SUSPENDED:
            return None
    elif row.in_flight:
        row = replace(row, queued_run=None, run_id=row.queued_run or row.run_id)
    elif row.state is fact.state and row.state is not fact.before:
        return None
    else:
        row = replace(row, attempt=row.attempt + 1)
    return replace(row, state=fact.state, reason=fact.reason, reason_data=fact.reason_data, ended=fact.at)


def was_stopped(row: InstanceRecord, run_id: str) -> bool:
    """Whether a command took the instance from the run that had it: what that says of it still is too late."""
    return row.run_id == run_id and row.queued_run != run_id and row.state in _STOPPED


def dropped(row: InstanceRecord, fact: RunEnded, began: bool) -> InstanceRecord:
    """An instance whose turn did not come.

    What another run is computing is that run's, and what another run finished meanwhile stays so. Else: where a person
    killed the run, it is killed too; where the run failed before it ``began`` any instance, it failed, or the same
    would be tried for ever, and where it was killed then, that is counted; where the run was interrupted, or others had
    their turn, it is what it was before.
    """
    row = replace(row, queued_run=None)
    is_interrupted = fact.ending is RunEnding.INTERRUPTED and (began or not fact.died)
    is_no_fault = is_interrupted or (began and fact.ending is RunEnding.FAILED)
    if is_no_fault or row.state in (InstanceState.SUCCEEDED, InstanceState.RUNNING):
        return row
    return over(replace(row, started=None) if fact.ending is RunEnding.KILLED else row, fact)


def over(row: InstanceRecord, fact: RunEnded) -> InstanceRecord:
    """An instance that is over with its run."""
    deaths = row.deaths + 1 if fact.died else 0
    row = replace(row, reason=fact.reason, reason_data=None, ended=fact.at, deaths=deaths)
    if fact.ending is RunEnding.INTERRUPTED and deaths < DEATHS:
        return replace(row, state=InstanceState.WAITING)
    if fact.ending is RunEnding.KILLED:
        return replace(row, state=InstanceState.KILLED)
    if fact.ending is RunEnding.INTERRUPTED:
        said = f"its run was killed {deaths} times in a row, which may be because of what it computes: {fact.reason}"
        row = replace(row, reason=said, deaths=0)
    return replace(row, state=InstanceState.FAILED, failures=row.failures + 1)
