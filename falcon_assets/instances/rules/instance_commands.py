"""Commands to instances: to which states each applies (source: Apache Falcon's operations)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from falcon_assets.model.process import Retry
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState, RerunRequest
from falcon_assets.planning.reason import Reason
from falcon_assets.planning.retries import settled

FAILED_STATES = (InstanceState.FAILED, InstanceState.TIMED_OUT, InstanceState.KILLED)
"""What did not come to its end as it should have."""
_TERMINAL = (*FAILED_STATES, InstanceState.SKIPPED)


class InstanceCommand(str, Enum):
    """What can be told to an instance."""

    RERUN = "rerun"
    KILL = "kill"
    SUSPEND = "suspend"
    RESUME = "resume"


AFTER = {
    InstanceCommand.KILL: InstanceState.KILLED,
    InstanceCommand.SUSPEND: InstanceState.SUSPENDED,
    InstanceCommand.RESUME: InstanceState.WAITING,
}
"""The state that a command gives; a rerun is only asked for."""


@dataclass(frozen=True)
class _Commanded(Reason):
    """Somebody said so."""

    by: str
    why: str

    def _said(self, done: str) -> str:
        return f"{done} by {self.by}" + (f": {self.why}" if self.why else "")


@dataclass(frozen=True)
class Killed(_Commanded):
    """Somebody ended it."""

    def __str__(self) -> str:
        """Who, and why."""
        return self._said("killed")


@dataclass(frozen=True)
class Suspended(_Commanded):
    """Somebody holds it back."""

    def __str__(self) -> str:
        """Who, and why."""
        return self._said("suspended")


@dataclass(frozen=True)
class Resumed(_Commanded):
    """Somebody lets it go on."""

    def __str__(self) -> str:
        """Who, and why."""
        return self._said("resumed")


REASONS: dict[InstanceCommand, type[_Commanded]] = {
    InstanceCommand.KILL: Killed,
    InstanceCommand.SUSPEND: Suspended,
    InstanceCommand.RESUME: Resumed,
}


def stops_or_resumes(
    command: InstanceCommand, record: InstanceRecord, request: RerunRequest | None, retry: Retry
) -> bool:
    """Whether a kill, a suspension or a resumption changes the instance.

    Args:
        command: Which of them.
        record: What is known about the instance.
        request: The request for which it is to run again and has not been given a run yet; None: there is none.
        retry: How its workload is tried again.
    """
    is_suspended = record.state is InstanceState.SUSPENDED
    if command is InstanceCommand.RESUME:
        return is_suspended
    is_over = settled(record, retry) and request is None
    return not is_over and not (command is InstanceCommand.SUSPEND and is_suspended)


def runs_again(record: InstanceRecord, request: RerunRequest | None, asked: RerunRequest, *, force: bool) -> bool:
    """Whether a rerun that is asked for changes anything about the instance.

    Args:
        record: What is known about the instance.
        request: As for :func:`stops_or_resumes`.
        asked: What is asked for.
        force: Whether an instance that succeeded is computed once more.
    """
    if request is not None:  # who asked first is answered; asked for in another way, it is run in that way
        way, wanted = ((one.is_late, one.use_latest, one.properties) for one in (request, asked))
        same = way == wanted
        return not same
    if record.in_flight:
        return False
    return record.state in _TERMINAL or (force and record.state is InstanceState.SUCCEEDED)
