"""Which process instances read a feed instance: input windows looked at from the other side."""

from __future__ import annotations

from datetime import datetime, timedelta

from falcon_assets.model.process import Input
from falcon_assets.planning.time.timeline import Timeline
from falcon_assets.planning.windows.expression_bounds import expression_bounds
from falcon_assets.planning.windows.input_windows import input_instances


def consumers(declared: Input, process: Timeline, feed: Timeline, timezone: str, instance: datetime) -> list[datetime]:
    """The process instances, oldest first, whose window of ``declared`` holds the feed instance.

    ``declared`` is a window between two times, not ``latest`` or ``future``.
    """
    # T reads the instance only if start(T) lies before the feed's next instance, and end(T) not before this one.
    least_start, _ = expression_bounds(declared.start.call)
    _, greatest_end = expression_bounds(declared.end.call)
    next_instance = feed.instance(feed.index_at_or_before(instance) + 1)
    first = _clip(instance, -greatest_end, process)
    last = _clip(next_instance, -least_start, process)
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
