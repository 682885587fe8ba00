"""Wall clocks: naive datetimes of a time zone, and how they meet absolute time."""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones


@cache
def zones() -> frozenset[str]:
    """The names of all IANA zones that are known here."""
    return frozenset(available_timezones())


@cache
def zone(name: str) -> ZoneInfo:
    """The zone of that IANA name (already validated)."""
    return ZoneInfo(name)


def to_wall(moment: datetime, timezone_name: str) -> datetime:
    """Returns the time on a wall clock of that zone at ``moment`` (aware); the result is naive."""
    return moment.astimezone(zone(timezone_name)).replace(tzinfo=None, fold=0)


def from_wall(wall: datetime, timezone_name: str) -> datetime:
    """The moment, in UTC, at which a wall clock of that zone shows ``wall`` (naive).

    A time that a spring change leaves out moves forward by what was left out; a time that an autumn change repeats
    means its first occurrence. Both are PEP 495's reading of ``fold=0``.

    Raises:
        OverflowError: before year 1 or after year 9999.
    """
    return wall.replace(tzinfo=zone(timezone_name), fold=0).astimezone(UTC)


def moments_of_wall(wall: datetime, timezone_name: str) -> tuple[datetime, datetime]:
    """The first and the last moment, in UTC, that a wall clock of that zone may show ``wall`` (naive) at.

    They differ where clocks are changed: both occurrences of a time that is repeated; around a time that is left out,
    all moments between which the clock goes past it.

    Raises:
        OverflowError: before year 1 or after year 9999.
    """
    first, last = (wall.replace(tzinfo=zone(timezone_name), fold=fold).astimezone(UTC) for fold in (0, 1))
    return min(first, last), max(first, last)


def add_months(wall: datetime, months: int) -> datetime:
    """``months`` later on the calendar; a day that the month lacks becomes its last day.

    Raises:
        OverflowError: before year 1 or after year 9999.
    """
    year, month = divmod(wall.year * 12 + wall.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise OverflowError("date value out of range")
    return wall.replace(year=year, month=month + 1, day=min(wall.day, monthrange(year, month + 1)[1]))


def start_of_day(wall: datetime) -> datetime:
    """Midnight at the beginning of that day."""
    return wall.replace(hour=0, minute=0, second=0, microsecond=0)


def whole_months_between(first: datetime, last: datetime) -> int:
    """Calendar months from the month of ``first`` to the month of ``last``, days ignored."""
    return (last.year - first.year) * 12 + last.month - first.month


MICROSECOND = timedelta(microseconds=1)
"""The smallest step of a datetime."""
