"""Rules for when and where collectors search for data from outside."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from falcon_assets.model.feed import Feed
from falcon_assets.model.wall_clock import MICROSECOND
from falcon_assets.planning.timeline import Timeline

FIRST_SECONDS, LONGEST_SECONDS = 15.0, 300.0
"""The first and the longest pause of a store; each failure in between doubles it."""
SLOW_SECONDS = 2.0
"""A slower failure opens the breaker at once; of quicker ones it takes two in a row."""
_QUICK_FAILURES = 2


@dataclass(frozen=True)
class Breaker:
    """The state of a circuit breaker; ``until`` is the end of the pause, times are seconds of a monotonic clock."""

    failures: int = 0
    opened: int = 0
    until: float | None = None
    why: str = ""

    def is_open(self, now: float) -> bool:
        """Returns whether the store must not be asked; after a pause one failure opens the breaker again."""
        return self.until is not None and now < self.until

    def failed(self, now: float, took: float, why: str) -> Breaker:
        failures = self.failures + 1
        if took < SLOW_SECONDS and failures < _QUICK_FAILURES and not self.opened:
            return Breaker(failures, why=why)
        pause = min(FIRST_SECONDS * 2 ** min(self.opened, 10), LONGEST_SECONDS)
        return Breaker(failures, self.opened + 1, now + pause, why)


def lag(timeline: Timeline, newest: datetime | None, due: datetime, now: datetime) -> timedelta:
    """Returns the age of the first instance after the newest; zero where it is not due, or the validity has ended."""
    first = timeline.start if newest is None else newest + MICROSECOND
    missing = timeline.indexes(first, due) if first <= due and timeline.count else range(0)
    return max(now - timeline.instance(missing[0]), timedelta()) if missing else timedelta()


_AT_LEAST = timedelta(hours=24)
_INSTANCES_AT_LEAST = 24


def watch_window(
    timeline: Timeline, now: datetime, last_tick: datetime | None, horizon: timedelta
) -> tuple[datetime, datetime] | None:
    """Returns the span of nominal times, both included, in which this tick searches; None: there is nothing to do.

    Every tick searches for an instance until it is ``horizon`` old (more than zero). Instances that became due in a
    longer pause are searched for once. ``last_tick`` is the last tick that finished its span; None: everything is
    searched for.
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
    """Yields spans of unknown instances, the oldest first, joined over up to 24 known ones in between."""
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
    """Returns the age up to which every tick searches: the longest of cut-off, timeouts, a day, and 24 instances."""
    cut_off = feed.late_arrival.cut_off.length if feed.late_arrival else timedelta()
    return max(cut_off, _AT_LEAST, _INSTANCES_AT_LEAST * feed.frequency.length, *consumers_timeouts)


def came_after(last_checked: datetime | None, modified: datetime | None, now: datetime) -> datetime | None:
    """Returns the earliest possible time of arrival, from the last check and the time of the store; None: not known."""
    known = [min(moment, now) for moment in (last_checked, modified) if moment is not None]
    return max(known) if last_checked is not None else None
