"""When and where collectors look for data that lands from outside."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from falcon_assets.model.feed import Feed
from falcon_assets.model.wall_clock import MICROSECOND
from falcon_assets.planning.timeline import Timeline

FIRST_SECONDS, LONGEST_SECONDS = 15.0, 300.0
"""How long a store is left alone the first time, and at most; each failure in between doubles it."""
SLOW_SECONDS = 2.0
"""A failure that took so long opens a breaker at once; of quicker failures it takes two in a row."""
_QUICK_FAILURES = 2


@dataclass(frozen=True)
class Breaker:
    """What is known about whether a store answers; all times are seconds of a clock that never goes back.

    Attributes:
        failures: How often it failed since it last answered.
        opened: How often in a row it was left alone.
        until: When it may be asked again; None: at any time.
        why: How it failed last.
    """

    failures: int = 0
    opened: int = 0
    until: float | None = None
    why: str = ""

    def is_open(self, now: float) -> bool:
        """Whether the store is to be left alone. Once that is over, one failure is enough to leave it alone again."""
        return self.until is not None and now < self.until

    def failed(self, now: float, took: float, why: str) -> Breaker:
        """After the store failed at ``now``, for which it took ``took`` seconds."""
        failures = self.failures + 1
        if took < SLOW_SECONDS and failures < _QUICK_FAILURES and not self.opened:
            return Breaker(failures, why=why)
        pause = min(FIRST_SECONDS * 2 ** min(self.opened, 10), LONGEST_SECONDS)
        return Breaker(failures, self.opened + 1, now + pause, why)


def lag(timeline: Timeline, newest: datetime | None, due: datetime, now: datetime) -> timedelta:
    """How long ago the nominal time was of the first instance after the newest one; nothing, where that is not due yet.

    Where the validity is over and its last instance is there, nothing is behind any more.

    Args:
        timeline: The instances of the feed.
        newest: The newest one that is there; None: there is none.
        due: None after it is due yet.
        now: The time.
    """
    first = timeline.start if newest is None else newest + MICROSECOND
    missing = timeline.indexes(first, due) if first <= due and timeline.count else range(0)
    return max(now - timeline.instance(missing[0]), timedelta()) if missing else timedelta()


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


def came_after(last_checked: datetime | None, modified: datetime | None, now: datetime) -> datetime | None:
    """The earliest time at which what is seen now may have come; None: nobody knows.

    Args:
        last_checked: When a collector had checked before.
        modified: When the store says that it was written, on the same clock as the others; None: it does not say.
        now: The time.
    """
    known = [min(moment, now) for moment in (last_checked, modified) if moment is not None]
    return max(known) if last_checked is not None else None
