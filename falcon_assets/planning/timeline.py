"""The instances of a timeline, by arithmetic, and the changes of a zone's offset (daylight saving and the like)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property, lru_cache

from falcon_assets.errors import UnknownEntityError, UnknownInstanceError
from falcon_assets.model.feed import Feed
from falcon_assets.model.frequency import Frequency, TimeUnit
from falcon_assets.model.instant import format_instant
from falcon_assets.model.process import Process
from falcon_assets.model.shared import Validity
from falcon_assets.model.wall_clock import MICROSECOND, add_months, from_wall, to_wall, whole_months_between, zone

_DAY = timedelta(days=1)
_RULE_REPEATS_FROM = 2140
"""The time zone database lists no single changes after 2087: from there on a yearly rule repeats for ever."""


@dataclass(frozen=True)
class OffsetChange:
    """A change of a zone's offset, at a time of day on the wall clock before it; positive shifts leave a gap."""

    at: timedelta
    shift: timedelta

    def touches(self, first: timedelta, last: timedelta) -> bool:
        """Whether the change can move, or fall between, wall-clock times from ``first`` to ``last``.

        Both are times of a day and may exceed it; the day of the change does not matter. Outside the times that a gap
        leaves out or a repetition doubles, order and distance on the wall are those of absolute time.
        """
        low, high = min(self.at, self.at + self.shift), max(self.at, self.at + self.shift)
        if abs(self.shift) >= _DAY / 2 or last - first >= _DAY:
            return True
        first, last = first % _DAY, first % _DAY + (last - first)
        return any(
            first < high + shifted and (last > low + shifted or first >= low + shifted)
            for shifted in (day * _DAY for day in (-1, 0, 1, 2))
        )

    def leaves_on_its_day(self, clock: timedelta) -> bool:
        if abs(self.shift) >= _DAY / 2:
            return False
        return not self.touches(clock, clock) or clock + max(self.shift, timedelta()) < _DAY


@lru_cache(maxsize=4096)
def offset_changes(timezone_name: str, first_year: int, last_year: int) -> frozenset[OffsetChange]:
    """The different changes of these years; two on one day that cancel out would be missed (the database has none)."""
    if zone(timezone_name).utcoffset(None) is not None:  # a zone that never changes, such as UTC
        return frozenset()
    years = range(max(min(first_year, _RULE_REPEATS_FROM), 2), min(last_year, _RULE_REPEATS_FROM) + 1)
    return frozenset(change for year in years for _, change in _changes_in(timezone_name, year))


def dated_changes(timezone_name: str, first_year: int, last_year: int) -> Iterator[tuple[datetime, OffsetChange]]:
    if zone(timezone_name).utcoffset(None) is None:
        for year in range(max(first_year, 2), min(last_year, 9998) + 1):
            yield from _changes_in(timezone_name, year)


@cache
def _changes_in(timezone_name: str, year: int) -> tuple[tuple[datetime, OffsetChange], ...]:
    local = zone(timezone_name)

    def offset(moment: datetime) -> timedelta:
        return moment.astimezone(local).utcoffset() or timedelta()

    day, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
    found = []
    before = offset(day)
    while day < end:
        after = offset(day + _DAY)
        if after != before:
            low, high = day, day + _DAY
            while high - low > timedelta(seconds=1):
                middle = low + ((high - low) // 2) // timedelta(seconds=1) * timedelta(seconds=1)
                low, high = (middle, high) if offset(middle) == before else (low, middle)
            wall = (high + before).replace(tzinfo=None)
            found.append((high, OffsetChange((wall - datetime.min) % _DAY, after - before)))
        day, before = day + _DAY, after
    return tuple(found)


@dataclass(frozen=True)
class Timeline:
    """The instances ``start + k * frequency``; those with ``start <= T < end`` exist; both in UTC.

    The *grid* is infinite in both directions; the *validity* cuts the existing instances out of it. Every instance is
    computed from ``start``, never from its neighbour: ``months(1)`` from 31 January gives 28 February, 31 March.
    Minutes and hours step in absolute time, days and months on the wall clock of ``timezone``. Nothing iterates over
    the timeline, so a validity until 2099 costs no more than one of a day.

    A zone that drops a whole day (Apia, 30 December 2011) gives two steps of ``days(1)`` the same instant; lists name
    it once, :attr:`count` counts both. ``first`` is 0, except after :meth:`cut` in some calendars.
    """

    start: datetime
    end: datetime
    frequency: Frequency
    timezone: str
    first: int = 0

    def instance(self, k: int) -> datetime:
        """``k`` may exceed the validity; raises OverflowError beyond the years 1 to 9999.

        A wall-clock time inside a spring gap moves forward by the gap, an ambiguous time means its first occurrence.
        """
        if self.frequency.is_absolute:
            return self.start + k * self.frequency.length
        # Instance 0 is the declared start itself, even where it names the second occurrence of an ambiguous time.
        return from_wall(self.wall(k), self.timezone) if k else self.start

    def wall(self, k: int) -> datetime:
        """The clock time (naive) that instance ``k`` is named after, before any move out of a spring gap.

        Minutes and hours: UTC; days and months: ``timezone``. No two instances share one, and ``23:30`` keeps its day
        even where the gap pushes it past midnight. Raises OverflowError beyond the years 1 to 9999.
        """
        if self.frequency.unit is TimeUnit.DAYS:
            return self._anchor + timedelta(days=k * self.frequency.count)
        if self.frequency.unit is TimeUnit.MONTHS:
            return add_months(self._anchor, k * self.frequency.count)
        return self._anchor + k * self.frequency.length

    def index_at_or_before(self, moment: datetime) -> int:
        """Of the unbounded grid; may be negative."""
        if self.frequency.is_absolute:
            return (moment - self.start) // self.frequency.length
        index = self._estimate(self._wall_near(moment))
        while self._is_after(index, moment):
            index -= 1
        while not self._is_after(index + 1, moment):
            index += 1
        return index

    def index_of_wall(self, wall: datetime) -> int:
        index = self._estimate(wall)
        while self._wall_is_before(index, wall):
            index += 1
        while not self._wall_is_before(index - 1, wall):
            index -= 1
        return index

    def at_or_before(self, moment: datetime) -> datetime | None:
        index = min(self.index_at_or_before(moment), self.count - 1)
        return self.instance(index) if index >= self.first else None

    def contains(self, moment: datetime) -> bool:
        if not self.start <= moment < self.end:
            return False
        index = self.index_at_or_before(moment)
        return index >= self.first and self.instance(index) == moment

    def require(self, moment: datetime, subject: str) -> None:
        """Raises UnknownInstanceError, with the reason, where ``moment`` is no existing instance of ``subject``."""
        if not self.contains(moment):
            raise UnknownInstanceError(f"{subject} has no instance {format_instant(moment)}: {self.why_not(moment)}")

    def indexes(self, first: datetime, last: datetime) -> range:
        low = max(self.index_at_or_before(first - MICROSECOND) + 1, 0) if first > self.start else 0
        high = self.index_at_or_before(last) if last < self.end else self.count - 1
        return range(max(low, self.first), min(high, self.count - 1) + 1)

    def between(self, first: datetime, last: datetime) -> list[datetime]:
        return list(dict.fromkeys(map(self.instance, self.indexes(first, last))))

    def until(self, now: datetime) -> list[datetime]:
        return self.between(self.start, now)

    @cached_property
    def count(self) -> int:
        """The index after the last instance; those before :attr:`first` are counted."""
        return self.index_at_or_before(self.end - MICROSECOND) + 1 if self.start < self.end else 0

    @property
    def last(self) -> datetime | None:
        return self.instance(self.count - 1) if self.count > self.first else None

    def cut(self, indexes: range) -> Timeline:
        """Keeps these instances only, with indexes of their own.

        It starts at the first of them, unless steps from there lead elsewhere (28 February for the 31st); then at one
        before it, which does not exist.
        """
        if not indexes:
            return replace(self, end=self.start, first=0)
        end = self.instance(indexes.stop) if indexes.stop < self.count else self.end
        start = next(k for k in range(indexes.start, -1, -1) if k == 0 or self._steps_alike_from(k))
        return replace(self, start=self.instance(start), end=end, first=indexes.start - start)

    def _steps_alike_from(self, k: int) -> bool:
        if self.frequency.is_absolute:
            return True
        wall = self.wall(k)
        on_its_wall = to_wall(self.instance(k), self.timezone) == wall
        return on_its_wall and (self.frequency.unit is TimeUnit.DAYS or wall.day == self._anchor.day)

    @cached_property
    def local_start(self) -> datetime:
        return to_wall(self.start, self.timezone)

    @cached_property
    def _anchor(self) -> datetime:
        if self.frequency.is_absolute:
            return self.start.astimezone(UTC).replace(tzinfo=None)
        return self.local_start

    def _wall_near(self, moment: datetime) -> datetime:
        try:
            return to_wall(moment, self.timezone)
        except OverflowError:
            return moment.replace(tzinfo=None)

    def _estimate(self, wall: datetime) -> int:
        if self.frequency.unit is TimeUnit.MONTHS:
            return whole_months_between(self._anchor, wall) // self.frequency.count
        return (wall - self._anchor) // self.frequency.length

    def _is_after(self, k: int, moment: datetime) -> bool:
        try:
            return self.instance(k) > moment
        except OverflowError:
            return k > 0

    def _wall_is_before(self, k: int, wall: datetime) -> bool:
        try:
            return self.wall(k) < wall
        except OverflowError:
            return k < 0

    def why_not(self, moment: datetime) -> str:
        if moment < self.instance(self.first):
            return f"its validity starts at {format_instant(self.instance(self.first))}"
        if moment >= self.end:
            return f"its validity ends at {format_instant(self.end)}"
        index = self.index_at_or_before(moment)
        before = format_instant(self.instance(index))
        if index == self.count - 1:
            return f"its frequency is {self.frequency}, and the last one is {before}"
        after = format_instant(self.instance(index + 1))
        return f"its frequency is {self.frequency}, and the nearest ones are {before} and {after}"


def feed_timeline(feed: Feed, cluster_name: str) -> Timeline:
    """Raises UnknownEntityError where it is not on that cluster."""
    entry = feed.on(cluster_name)
    names = [cluster.name for cluster in feed.clusters]
    return _timeline(f"feed {feed.name!r}", feed, entry.validity if entry else None, cluster_name, names)


def process_timeline(process: Process, cluster_name: str) -> Timeline:
    """Raises UnknownEntityError where it is not on that cluster."""
    entry = process.on(cluster_name)
    names = [cluster.name for cluster in process.clusters]
    return _timeline(f"process {process.name!r}", process, entry.validity if entry else None, cluster_name, names)


def _timeline(
    subject: str, entity: Feed | Process, validity: Validity | None, cluster_name: str, names: list[str]
) -> Timeline:
    if validity is None:
        raise UnknownEntityError(f"{subject} is not on cluster {cluster_name!r}; it is on: {', '.join(names)}")
    return Timeline(validity.start, validity.end, entity.frequency, entity.timezone)
