"""Which missing instances collectors search for in every tick: young instances. Passes over folders find old ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timedelta

from falcon_assets.model.feed import Feed
from falcon_assets.model.wall_clock import MICROSECOND
from falcon_assets.planning.time.timeline import Timeline

_AT_LEAST = timedelta(hours=24)
_INSTANCES_AT_LEAST = 24


def watch_window(
    timeline: Timeline, now: datetime, last_tick: datetime | None, horizon: timedelta
) -> tuple[datetime, datetime] | None:
    """The span of nominal times in which this tick searches for missing instances.

    Every tick searches for an instance until it is ``horizon`` old. After a pause longer than that, what came up in
    the pause was never searched for, and is searched for once.

    Args:
        timeline: The instances that exist.
        now: The time of this tick.
        last_tick: The time of the last tick that searched its span to the end; None: there was none, so
            everything is searched for.
        horizon: More than zero; see :func:`horizon_of`.

    Returns:
        From an existing instance to an existing instance, both included; None where there is nothing to search for.
    """
    first = timeline.start
    if last_tick is not None and now > timeline.start:
        last_tick = min(last_tick, now - MICROSECOND)
        if last_tick - timeline.start >= horizon:
            first = last_tick - horizon + MICROSECOND
    span = timeline.indexes(first, now)
    return (timeline.instance(span[0]), timeline.instance(span[-1])) if span else None


def missing_windows(
    timeline: Timeline, first: datetime, last: datetime, known: Collection[datetime]
) -> Iterator[tuple[datetime, datetime]]:
    """The spans of the instances from ``first`` to ``last`` that are not known, oldest first.

    Spans that are less than a few instances apart are joined.

    Args:
        timeline: The instances that exist.
        first: A time.
        last: A time.
        known: A set, for speed.
    """
    span: tuple[datetime, datetime] | None = None
    apart = 0
    for index in timeline.indexes(first, last):
        instance = timeline.instance(index)
        if instance in known:
            apart += 1
        elif span and apart <= _INSTANCES_AT_LEAST:
            span, apart = (span[0], instance), 0
        else:
            if span:
                yield span
            span, apart = (instance, instance), 0
    if span:
        yield span


def horizon_of(feed: Feed, consumers_timeouts: Iterable[timedelta]) -> timedelta:
    """How old instances of ``feed`` get while every tick searches for them.

    The longest of: the late cut-off, any consumer's timeout, a day, and 24 instances.

    Args:
        feed: The feed.
        consumers_timeouts: How long each workload that reads the feed waits for it.
    """
    cut_off = feed.late_arrival.cut_off.length if feed.late_arrival else timedelta()
    return max(cut_off, _AT_LEAST, _INSTANCES_AT_LEAST * feed.frequency.length, *consumers_timeouts)
