"""Rules of notification: receivers, times and texts of messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from falcon_assets.errors import count_of, printable
from falcon_assets.history.events.instance_event import Notice
from falcon_assets.model.event_kind import EventKind
from falcon_assets.model.instant import format_instant
from falcon_assets.model.notification import Notification

INTERVAL = timedelta(minutes=5)
"""Between two messages to a receiver: events of the meantime form one message."""
GIVEN_UP_AFTER = timedelta(days=3)
KEPT_FOR = timedelta(days=7)
URGENT = frozenset(
    (EventKind.FAILED, EventKind.TIMED_OUT, EventKind.SLA, EventKind.LATE, EventKind.KILLED, EventKind.RESTORED)
)
"""Others need no action: they wait for one interval, so that a pass of retention becomes one message."""

_FIRST_WAIT, _LONGEST_WAIT = timedelta(minutes=1), timedelta(minutes=15)


@dataclass(frozen=True)
class WaitingReceiver:
    """The events that wait for a receiver.

    Attributes:
        receiver: The variable with the URL, or the place where it is encrypted.
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


def is_due(waiting: WaitingReceiver, now: datetime, interval: timedelta = INTERVAL) -> bool:
    at = due_at(waiting, interval)
    return at <= now or at - now > _LONGEST_WAIT  # else the clock was set back


def due_at(waiting: WaitingReceiver, interval: timedelta = INTERVAL) -> datetime:
    if waiting.retry_at is not None:
        return waiting.retry_at
    if waiting.is_interrupted:
        return waiting.oldest
    ready = waiting.oldest if waiting.is_urgent else waiting.oldest + interval
    return ready if waiting.sent_at is None else max(ready, waiting.sent_at + interval)


def retry_after(failures: int) -> timedelta:
    return min(_FIRST_WAIT * (1 << min(failures - 1, 10)), _LONGEST_WAIT)


def receivers(event: EventKind, declared: Notification | None, default: Notification | None) -> Sequence[str]:
    notification = declared or default
    if notification is None or event not in notification.on:
        return ()
    return tuple(dict.fromkeys(receiver.url.label for receiver in notification.to))


_GROUPS, _LINES, _REASON = 10, 10, 200


@dataclass(frozen=True)
class Message:
    """A message; ``key`` is the same when it is repeated because its delivery is not known."""

    key: str
    title: str
    body: str


def message_of(key: str, notices: Sequence[Notice]) -> Message:
    """Summarizes events for one receiver: all of them as numbers, the first ones in words."""
    if len(notices) == 1:
        title = f"falcon: {_subject(notices[0])}"
    else:
        events = Counter(one.happening.event.value for one in notices)
        title = f"falcon: {', '.join(f'{number} {event}' for event, number in _ordered(events))}"
    lines = [*_counts(notices), *_told(notices), f"all of it: falcon notification list --filter message={key}"]
    return Message(key, title, "\n".join(lines))


def _counts(notices: Sequence[Notice]) -> list[str]:
    if len(notices) == 1:
        return []
    groups = _ordered(Counter((one.happening.event.value, one.kind, one.entity, _reason(one)) for one in notices))
    lines = [
        f"{number} x {event} {kind} {entity}{f': {reason}' if reason else ''}"
        for (event, kind, entity, reason), number in groups[:_GROUPS]
    ]
    if len(groups) > _GROUPS:
        rest = sum(number for _, number in groups[_GROUPS:])
        lines.append(f"{rest} x for {count_of(len(groups) - _GROUPS, 'other reason')}")
    return [*lines, ""]


def _told(notices: Sequence[Notice]) -> list[str]:
    lines = []
    for one in notices[:_LINES]:
        said = _reason(one)
        lines.append(f"{_subject(one)}{f': {said}' if said else ''}")
    if len(notices) > _LINES:
        lines.append(f"... and {len(notices) - _LINES} more")
    return [*lines, ""]


def _subject(one: Notice) -> str:
    happening = one.happening
    where = f"{happening.cluster} {format_instant(happening.instance)}"
    return f"{happening.event.value} {one.kind} {one.entity} on {where}"


def _reason(one: Notice) -> str:
    first = printable(one.happening.reason.partition("\n")[0].strip())
    return first if len(first) <= _REASON else f"{first[: _REASON - 3]}..."


def _ordered(counts: Counter) -> list:  # type: ignore[type-arg]
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
