"""The changes of a zone's offset (daylight saving and the like) in a span of years."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache

from falcon_assets.model.wall_clock import zone

_DAY = timedelta(days=1)
_RULE_REPEATS_FROM = 2140
"""The time zone database lists no single changes after 2087: from there on a yearly rule repeats for ever."""


@dataclass(frozen=True)
class OffsetChange:
    """A change of a zone's offset.

    Attributes:
        at: When the wall clock is changed, as a time of its day before the change.
        shift: How far it is moved; positive forward (a gap), negative backward (times occur twice).
    """

    at: timedelta
    shift: timedelta

    def touches(self, first: timedelta, last: timedelta) -> bool:
        """Whether the change can move, or come between, wall-clock times from ``first`` to ``last``.

        Both are times of a day and may exceed it; which day the change is on does not matter. Outside the times that a
        gap leaves out or a repetition doubles, order and distance on the wall are those of absolute time.
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
        """Whether a time of day that falls into the gap stays on its day when it moves out of it."""
        if abs(self.shift) >= _DAY / 2:
            return False
        return not self.touches(clock, clock) or clock + max(self.shift, timedelta()) < _DAY


@lru_cache(maxsize=4096)
def offset_changes(timezone_name: str, first_year: int, last_year: int) -> frozenset[OffsetChange]:
    """The different changes that happen from the start of ``first_year`` to the end of ``last_year``.

    Found by looking at every day once per zone and year, and remembered; two changes on one day that cancel each other
    out would be missed (the database has none).
    """
    if zone(timezone_name).utcoffset(None) is not None:  # a zone that never changes, such as UTC
        return frozenset()
    years = range(max(min(first_year, _RULE_REPEATS_FROM), 2), min(last_year, _RULE_REPEATS_FROM) + 1)
    return frozenset(change for year in years for _, change in _changes_in(timezone_name, year))


def dated_changes(timezone_name: str, first_year: int, last_year: int) -> Iterator[tuple[datetime, OffsetChange]]:
    """Each change from the start of ``first_year`` to the end of ``last_year`` with its moment in UTC, oldest first."""
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
