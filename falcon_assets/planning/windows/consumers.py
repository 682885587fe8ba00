"""Which process instances read a feed instance: the inverse of input windows."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from falcon_assets.model.expression import Call
from falcon_assets.model.process import Input
from falcon_assets.planning.time.timeline import Timeline
from falcon_assets.planning.windows.evaluate import evaluate_time
from falcon_assets.planning.windows.expression_bounds import expression_bounds
from falcon_assets.planning.windows.input_windows import input_instances
from falcon_assets.planning.windows.window_offsets import window_offsets


class ReaderSpan(NamedTuple):
    """The nominal times whose windows may have a feed instance."""

    first: datetime
    last: datetime
    """Included; before ``first``: there is none."""
    is_exact: bool
    """Whether every instance of the process in the span reads it."""


def reader_span(declared: Input, process: Timeline, feed: Timeline, timezone: str, instance: datetime) -> ReaderSpan:
    """Between which process instances those are whose window of ``declared`` has the feed instance.

    It costs the same for any validity. ``declared`` is a window between two times, not ``latest`` or ``future``.
    """
    start, end = declared.start.call, declared.end.call
    index = feed.index_at_or_before(instance)
    offsets = window_offsets(process, feed, start, end)
    if offsets is not None:
        at = process.index_at_or_before(instance)
        indexes = range(max(at - offsets[1], process.first), min(at - offsets[0], process.count - 1) + 1)
        if not indexes:
            return ReaderSpan(process.end, process.start, True)
        return ReaderSpan(process.instance(indexes[0]), process.instance(indexes[-1]), True)
    # T reads the instance only if start(T) lies before the feed's next instance, and end(T) not before the instance.
    fixed_start, fixed_end = (_fixed_index(call, process, feed, timezone) for call in (start, end))
    if (fixed_start is not None and fixed_start > index) or (fixed_end is not None and fixed_end < index):
        return ReaderSpan(process.end, process.start, True)
    first = last = None
    if fixed_end is None:
        first = _clip(instance, -expression_bounds(end)[1], process)
    if fixed_start is None:
        following = min(index + 1, feed.count)
        upper = feed.instance(following) if following < feed.count else feed.end
        last = _clip(upper, -expression_bounds(start)[0], process)
    return ReaderSpan(first or process.start, last or process.end, False)


def consumers(declared: Input, process: Timeline, feed: Timeline, timezone: str, instance: datetime) -> list[datetime]:
    """The process instances, oldest first, whose window of ``declared`` has the feed instance.

    ``declared`` is a window between two times, not ``latest`` or ``future``.
    """
    span = reader_span(declared, process, feed, timezone, instance)
    nominals = process.between(span.first, span.last)
    if span.is_exact:
        return nominals
    return [one for one in nominals if instance in input_instances(declared, feed, one, timezone)]


def _fixed_index(call: Call, process: Timeline, feed: Timeline, timezone: str) -> int | None:
    """The feed instance that an expression means at every nominal time; None where it depends on that."""
    if any(one.name != "dateOffset" for one in call.calls()):
        return None
    return feed.index_at_or_before(evaluate_time(call, process.start, timezone))


def _clip(moment: datetime, offset: timedelta, timeline: Timeline) -> datetime:
    """``moment + offset``, moved into the timeline where it would lie outside it (or outside the calendar)."""
    try:
        return min(max(moment + offset, timeline.start), timeline.end)
    except OverflowError:
        return timeline.end if offset > timedelta() else timeline.start
