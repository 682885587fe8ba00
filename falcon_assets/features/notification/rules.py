"""Rules of notification: receivers and texts of messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from falcon_assets.errors import count_of, printable
from falcon_assets.history.events.instance_event import EXECUTOR, Notice
from falcon_assets.model.event_kind import EventKind
from falcon_assets.model.instant import format_instant
from falcon_assets.model.notification import Notification


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
    at = f"at {format_instant(happening.at)}" if one.kind == EXECUTOR else format_instant(happening.instance)
    where = f"{happening.cluster} {at}"
    return f"{happening.event.value} {one.kind} {one.entity} on {where}"


def _reason(one: Notice) -> str:
    first = printable(one.happening.reason.partition("\n")[0].strip())
    return first if len(first) <= _REASON else f"{first[: _REASON - 3]}..."


def _ordered(counts: Counter) -> list:  # type: ignore[type-arg]
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
