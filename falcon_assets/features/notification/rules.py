"""Which events are told, to whom, when and in what words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from falcon_assets.errors import count_of, printable
from falcon_assets.history.events.instance_event import Notice
from falcon_assets.model.instant import format_instant
from falcon_assets.model.notification import EventKind, Notification

INTERVAL = timedelta(minutes=5)
"""From one message to a receiver to the next: what happens meanwhile becomes one message."""
GIVEN_UP_AFTER = timedelta(days=3)
"""So long it is tried to tell an event."""
KEPT_FOR = timedelta(days=7)
"""So long is known what was told."""
CALM = frozenset((EventKind.EVICTED, EventKind.SUCCEEDED))
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


def receivers(event: EventKind, declared: Notification | None, default: Notification | None) -> Sequence[str]:
    """Who is told such an event, each once, by the name of the variable: as the entity says, else the location."""
    notification = declared or default
    if notification is None or event not in notification.on:
        return ()
    return tuple(dict.fromkeys(receiver.url.env for receiver in notification.to))


_GROUPS, _LINES, _REASON = 10, 10, 200


@dataclass(frozen=True)
class Message:
    """A message to a receiver.

    Attributes:
        key: Names it: what is sent again, because nobody knows whether it came, has the same.
        title: Its subject.
        body: Plain text.
    """

    key: str
    title: str
    body: str


def message_of(key: str, notices: Sequence[Notice]) -> Message:
    """The message that tells these events to one receiver: all of them in numbers, the first ones in words."""
    if len(notices) == 1:
        title = f"falcon: {_subject(notices[0])}"
    else:
        events = Counter(one.happening.event.value for one in notices)
        title = f"falcon: {', '.join(f'{number} {event}' for event, number in _ordered(events))}"
    lines = [*_counts(notices), *_told(notices), f"all of it: falcon notification list --filter message={key}"]
    return Message(key, title, "\n".join(lines))


def _counts(notices: Sequence[Notice]) -> list[str]:
    """How many, by event, entity and reason."""
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
    """The first line of why, not too long."""
    first = printable(one.happening.reason.partition("\n")[0].strip())
    return first if len(first) <= _REASON else f"{first[: _REASON - 3]}..."


def _ordered(counts: Counter) -> list:  # type: ignore[type-arg]
    """The most frequent first."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
