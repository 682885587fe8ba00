"""What a receiver reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from falcon_assets.errors import count_of, printable
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.notification.events import Notice

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
