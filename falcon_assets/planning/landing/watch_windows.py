"""Which missing instances are looked for in every tick: the young ones. Passes find the old ones, see ``patrol``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timedelta

from falcon_assets.model.feed import Feed
from falcon_assets.planning.time.timeline import Timeline
from falcon_assets.planning.time.wall_clock import MICROSECOND

_AT_LEAST = timedelta(hours=24)
_INSTANCES_AT_LEAST = 24


def watch_window(
    timeline: Timeline, now: datetime, looked_at: datetime | None, horizon: timedelta
) -> tuple[datetime, datetime] | None:
    """The span of nominal times in which missing instances are looked for in this tick.

    An instance is looked for in every tick until it is ``horizon`` old. After a pause longer than that, what came up in
    the pause was never looked for, and is looked for once.

    Args:
        timeline: The instances that exist.
        now: The time of this tick.
        looked_at: The time of the last tick whose span was looked through to the end; None: there was none, so
            everything is looked through.
        horizon: More than zero; see :func:`horizon_of`.

    Returns:
        From an existing instance to an existing instance, both included; None where there is none to look for.
    """
    first = timeline.start
    if looked_at is not None and now > timeline.start:
        looked_at = min(looked_at, now - MICROSECOND)
        if looked_at - timeline.start >= horizon:
            first = looked_at - horizon + MICROSECOND
    span = timeline.indexes(first, now)
    return (timeline.instance(span[0]), timeline.instance(span[-1])) if span else None


def missing_windows(
    timeline: Timeline, first: datetime, last: datetime, known: Collection[datetime]
) -> Iterator[tuple[datetime, datetime]]:
    """The spans of the instances from ``first`` to ``last`` that are not known, oldest first.

    Spans that are less than a few instances apart are one.

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
    """How old instances of ``feed`` get while they are looked for in every tick.

    The longest of: the late cut-off, any consumer's timeout, a day, and 24 instances.

    Args:
        feed: The feed.
        consumers_timeouts: How long each process that reads the feed waits for it.
    """
    cut_off = feed.late_arrival.cut_off.length if feed.late_arrival else timedelta()
    return max(cut_off, _AT_LEAST, _INSTANCES_AT_LEAST * feed.frequency.length, *consumers_timeouts)
