"""Rules of the outbox: when a message to a receiver is due, and tried again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from falcon_assets.model.event_kind import EventKind

GIVEN_UP_AFTER = timedelta(days=3)
KEPT_FOR = timedelta(days=7)
URGENT = frozenset(
    (
        *(EventKind.FAILED, EventKind.TIMED_OUT, EventKind.SLA, EventKind.LATE, EventKind.KILLED, EventKind.RESTORED),
        *(EventKind.EXECUTOR_OFFLINE, EventKind.EXECUTOR_ONLINE),
    )
)
"""Others need no action: they wait for one pause, so that a pass of retention becomes one message to people."""

_FIRST_WAIT, _LONGEST_WAIT = timedelta(minutes=1), timedelta(minutes=15)


@dataclass(frozen=True)
class WaitingReceiver:
    """The events that wait for a receiver.

    Attributes:
        receiver: Its name.
        is_urgent: Whether an event is in :data:`URGENT`.
        is_interrupted: Whether a begun message may or may not have been sent.
        retry_at: After a failure; None: the last message did not fail.
    """

    receiver: str
    oldest: datetime
    is_urgent: bool
    is_interrupted: bool = False
    sent_at: datetime | None = None
    retry_at: datetime | None = None


def is_due(waiting: WaitingReceiver, now: datetime, pause: timedelta) -> bool:
    at = due_at(waiting, pause)
    return at <= now or at - now > _LONGEST_WAIT  # else the clock was set back


def due_at(waiting: WaitingReceiver, pause: timedelta) -> datetime:
    if waiting.retry_at is not None:
        return waiting.retry_at
    if waiting.is_interrupted:
        return waiting.oldest
    ready = waiting.oldest if waiting.is_urgent else waiting.oldest + pause
    return ready if waiting.sent_at is None else max(ready, waiting.sent_at + pause)


def retry_after(failures: int) -> timedelta:
    return min(_FIRST_WAIT * (1 << min(failures - 1, 10)), _LONGEST_WAIT)
