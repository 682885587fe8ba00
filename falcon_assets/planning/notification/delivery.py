"""When a receiver is sent what waits for it: soon, but not a flood; all times are real."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from falcon_assets.model.notification import Told

INTERVAL = timedelta(minutes=5)
"""From one message to a receiver to the next: what happens meanwhile becomes one message."""
GIVEN_UP_AFTER = timedelta(days=3)
"""So long it is tried to tell an event."""
KEPT_FOR = timedelta(days=7)
"""So long is known what was told."""
CALM = frozenset((Told.EVICTED, Told.SUCCEEDED))
"""Events that nobody has to act on: they wait for one interval, so that a pass of retention becomes one message."""

_FIRST_WAIT, _LONGEST_WAIT = timedelta(minutes=1), timedelta(minutes=15)


@dataclass(frozen=True)
class WaitingReceiver:
    """What waits for a receiver.

    Attributes:
        receiver: Name of the environment variable with its URL.
        oldest: Since when the oldest event waits.
        is_urgent: Whether one of the events is not calm.
        is_interrupted: Whether a message was begun, and nobody knows whether it was sent.
        sent_at: When the last message was sent; None: never.
        retry_at: When it is to be tried again, because it failed last; None: it did not.
    """

    receiver: str
    oldest: datetime
    is_urgent: bool
    is_interrupted: bool = False
    sent_at: datetime | None = None
    retry_at: datetime | None = None


def is_due(waiting: WaitingReceiver, now: datetime, interval: timedelta = INTERVAL) -> bool:
    """Whether the receiver is sent a message now; ``interval``: from one message to the next."""
    at = due_at(waiting, interval)
    return at <= now or at - now > _LONGEST_WAIT  # else the clock was set back


def due_at(waiting: WaitingReceiver, interval: timedelta = INTERVAL) -> datetime:
    """When the receiver is sent a message; ``interval``: from one message to the next."""
    if waiting.retry_at is not None:
        return waiting.retry_at
    if waiting.is_interrupted:
        return waiting.oldest
    ready = waiting.oldest if waiting.is_urgent else waiting.oldest + interval
    return ready if waiting.sent_at is None else max(ready, waiting.sent_at + interval)


def retry_after(failures: int) -> timedelta:
    """How long to wait after so many failures in a row."""
    return min(_FIRST_WAIT * (1 << min(failures - 1, 10)), _LONGEST_WAIT)
