"""Commands on instances, and the states that each applies to (source: Apache Falcon's operations)."""

from __future__ import annotations

from enum import Enum

from falcon_assets.model.process import Retry
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState, RerunRequest
from falcon_assets.planning.reasons import Commanded, Killed, Resumed, Suspended
from falcon_assets.planning.retries import settled

FAILED_STATES = (InstanceState.FAILED, InstanceState.TIMED_OUT, InstanceState.KILLED)
_TERMINAL = (*FAILED_STATES, InstanceState.SKIPPED)


class InstanceCommand(str, Enum):
    RERUN = "rerun"
    RESEND = "resend"
    KILL = "kill"
    SUSPEND = "suspend"
    RESUME = "resume"


AFTER = {
    InstanceCommand.KILL: InstanceState.KILLED,
    InstanceCommand.SUSPEND: InstanceState.SUSPENDED,
    InstanceCommand.RESUME: InstanceState.WAITING,
}
"""Without RERUN and RESEND, which are only requested."""


REASONS: dict[InstanceCommand, type[Commanded]] = {
    InstanceCommand.KILL: Killed,
    InstanceCommand.SUSPEND: Suspended,
    InstanceCommand.RESUME: Resumed,
}


def stops_or_resumes(
    command: InstanceCommand, record: InstanceRecord, request: RerunRequest | None, retry: Retry
) -> bool:
    """``request`` is the one that the instance waits for; None: none."""
    is_suspended = record.state is InstanceState.SUSPENDED
    if command is InstanceCommand.RESUME:
        return is_suspended
    is_over = settled(record, retry) and request is None
    return not is_over and not (command is InstanceCommand.SUSPEND and is_suspended)


def runs_again(record: InstanceRecord, request: RerunRequest | None, asked: RerunRequest, *, force: bool) -> bool:
    """An instance that waits for a request changes only if the new one runs it in another way."""
    if request is not None:  # who asked first is answered; asked for in another way, it is run in that way
        way, wanted = ((one.is_late, one.use_latest, one.properties) for one in (request, asked))
        same = way == wanted
        return not same
    if record.in_flight:
        return False
    return record.state in _TERMINAL or (force and record.state is InstanceState.SUCCEEDED)
