"""Which process instances read a feed instance: input windows looked at from the other side."""

from __future__ import annotations

from datetime import datetime, timedelta

from falcon_assets.model.expression import Call
from falcon_assets.model.process import Input
from falcon_assets.planning.inputs import input_instances
from falcon_assets.planning.timeline import Timeline

_DAY = timedelta(days=1)
_ANCHOR_REACH = {
    "today": _DAY,
    "yesterday": 2 * _DAY,
    "currentWeek": 7 * _DAY,
    "lastWeek": 14 * _DAY,
    "currentMonth": 31 * _DAY,
    "lastMonth": 62 * _DAY,
    "currentYear": 366 * _DAY,
    "lastYear": 732 * _DAY,
}
"""How far before T the calendar point lies that an expression starts from, at most."""
_UNIT_REACH = {
    "MINUTE": timedelta(minutes=1),
    "HOUR": timedelta(hours=1),
    "DAY": _DAY,
    "MONTH": 31 * _DAY,
    "YEAR": 366 * _DAY,
}


def reach(call: Call) -> tuple[timedelta, timedelta]:
    """Bounds ``(lower, upper)`` of ``resolved time - T`` over all T, a day of slack for zones included."""
    if call.name == "dateOffset":
        base, count, unit = call.args
        inner = reach(base) if isinstance(base, Call) else (timedelta.min / 4, timedelta.max / 4)
        step = int(str(count)) * _UNIT_REACH[str(unit)]
        return inner[0] + min(step, timedelta()) - _DAY, inner[1] + max(step, timedelta()) + _DAY
    numbers = [arg for arg in call.args if isinstance(arg, int)]
    units = ["MINUTE", "HOUR", "DAY", "MONTH"]
    steps = [number * _UNIT_REACH[unit] for number, unit in zip(reversed(numbers), units, strict=False)]
    zero = timedelta()
    lower = sum((min(step, zero) for step in steps), zero) - _ANCHOR_REACH.get(call.name, zero)
    upper = sum((max(step, zero) for step in steps), zero)
    return lower - _DAY, upper + _DAY


def consumers(
    declared: Input, process: Timeline, feed: Timeline, timezone: str, instance: datetime
) -> list[datetime]:
    """The process instances, oldest first, whose window of ``declared`` holds the feed instance.

    ``declared`` is a window between two times, not ``latest`` or ``future``.
    """
    lower, _ = reach(declared.start.call)
    _, upper = reach(declared.end.call)
    # start(T) <= instance + one step of the feed, and end(T) >= instance.
    index = feed.index_at_or_before(instance)
    next_instance = feed.instance(index + 1)
    first = _clip(instance, -upper, process)
    last = _clip(next_instance, -lower, process)
    return [
        nominal
        for nominal in process.between(first, last)
        if instance in input_instances(declared, feed, nominal, timezone)
    ]


def _clip(moment: datetime, offset: timedelta, timeline: Timeline) -> datetime:
    """``moment + offset``, moved into the timeline where it would lie outside it (or outside the calendar)."""
    try:
        return min(max(moment + offset, timeline.start), timeline.end)
    except OverflowError:
        return timeline.end if offset > timedelta() else timeline.start
