"""The functions of the expression language: what each takes and what it means (source: Apache Falcon's).

A new function is a new entry of :data:`FUNCTIONS`, whose class says all that is known of it. ``now`` adds absolute time
to the nominal time. The functions named after a day, week, month or year start from the calendar of the process's zone
and add on the *wall clock*, so ``today(0,0)`` to ``today(23,0)`` covers every hour of a day of 23 or 25 hours just as
it does every other day.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from functools import cached_property
from typing import Any, TypeAlias

from falcon_assets.errors import ExpressionError
from falcon_assets.model.frequency import Frequency, TimeUnit
from falcon_assets.model.wall_clock import add_months, from_wall, start_of_day, to_wall, zone, zones


class Kind(str, Enum):
    """The kind of an argument, or of the result of a function."""

    NUMBER = "a whole number"
    TEXT = "a quoted text"
    WEEKDAY = "a weekday, SUN to SAT"
    TIME = "a time"
    INSTANCES = "available instances"


WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
OFFSET_UNITS = ("MINUTE", "HOUR", "DAY", "MONTH", "YEAR")

Arguments: TypeAlias = tuple[Any, ...]
"""As written, but for calls and quoted instants: those are what the method is about, a value or a span."""
Span: TypeAlias = tuple[timedelta, timedelta]
"""Least and greatest value of ``resolved time - nominal time``."""

_N = Kind.NUMBER
_ZERO, _DAY = timedelta(), timedelta(days=1)
ANYWHERE: Span = (timedelta.min / 4, timedelta.max / 4)
_ABSOLUTE = {"MINUTE": timedelta(minutes=1), "HOUR": timedelta(hours=1)}
_DAYS = {"DAY": (1, 1), "MONTH": (28, 31), "YEAR": (365, 366)}
_QUOTED = re.compile(r"'[^']*'")


@dataclass(frozen=True)
class Function:
    """A function; of its own class where it returns a time or a text.

    Attributes:
        arguments: The kinds of its arguments.
        result: The kind of its result.
        optional: How many of its last arguments may be left out.
    """

    arguments: tuple[Kind, ...] = ()
    result: Kind = Kind.TIME
    optional: int = field(default=0, kw_only=True)

    @cached_property
    def takes_times(self) -> bool:
        """Whether an argument is a time, which may be a call."""
        return Kind.TIME in self.arguments

    def problem(self, args: Arguments) -> str | None:
        """Returns a mistake in arguments whose number and kinds are right; None: there is none."""
        return None


class TimeFunction(Function):
    """A function that returns a time."""

    def value(self, args: Arguments, nominal: datetime, timezone: str) -> datetime:
        """The moment that it means at a nominal time.

        Raises:
            OverflowError: beyond the years 1 to 9999.
        """
        raise NotImplementedError

    def span(self, args: Arguments) -> Span:
        """How far from the nominal time it lies, over all nominal times and zones.

        Exact for absolute functions. Others have a day of slack on either side for what a zone can do to a wall clock.
        """
        raise NotImplementedError

    def absolute(self, args: Arguments) -> timedelta | None:
        """Absolute time from the nominal time; None where it depends on a calendar."""
        return None

    def shift(self, args: Arguments, nominal: datetime, frequency: Frequency) -> tuple[int, timedelta] | None:
        """Calendar months, then time on the wall clock, from every nominal time; None where it is not always the same.

        Args:
            args: The arguments.
            nominal: A nominal time on the wall clock; the others have the same time of day.
            frequency: The steps of the nominal times.
        """
        return None


class TextFunction(Function):
    """A function that returns a text."""

    def text(self, args: Arguments, timezone: str, user: str) -> str:
        """The text that it means.

        Raises:
            ExpressionError: an argument is not legal.
        """
        raise NotImplementedError


class _Now(TimeFunction):
    def value(self, args: Arguments, nominal: datetime, timezone: str) -> datetime:
        return nominal + self.absolute(args)

    def span(self, args: Arguments) -> Span:
        return self.absolute(args), self.absolute(args)

    def absolute(self, args: Arguments) -> timedelta:
        hours, minutes = args or (0, 0)
        return timedelta(hours=hours, minutes=minutes)


class _DateOffset(TimeFunction):
    def problem(self, args: Arguments) -> str | None:
        return None if args[2] in OFFSET_UNITS else f"dateOffset counts in {', '.join(OFFSET_UNITS)}, not {args[2]!r}"

    def value(self, args: Arguments, nominal: datetime, timezone: str) -> datetime:
        base, number, unit = args
        if unit in _ABSOLUTE:
            return base + number * _ABSOLUTE[unit]  # type: ignore[no-any-return]
        wall = to_wall(base, timezone)
        if unit == "DAY":
            return from_wall(wall + number * _DAY, timezone)
        return from_wall(add_months(wall, number * (12 if unit == "YEAR" else 1)), timezone)

    def span(self, args: Arguments) -> Span:
        (low, high), number, unit = args
        if (low, high) == ANYWHERE:
            return ANYWHERE
        if unit in _ABSOLUTE:
            return low + number * _ABSOLUTE[unit], high + number * _ABSOLUTE[unit]
        # A month end that is cut short (31 January + 1 month) may cost three days more.
        least, most = _steps(number, _DAYS[unit])
        return low + least - 4 * _DAY, high + most + 4 * _DAY


@dataclass(frozen=True)
class _OnCalendar(TimeFunction):
    """Adds days, hours and minutes on the wall clock to a point of the calendar.

    Attributes:
        steps: Days, weeks, months or years from the nominal time's own to that of the point.
        age: How many days before the nominal time the point lies: least, most.
    """

    arguments: tuple[Kind, ...] = (_N, _N)
    steps: int = 0
    age: tuple[int, int] = (0, 0)

    def point(self, today: datetime, args: Arguments) -> datetime:
        """The point, on the wall clock, as of midnight of the nominal time's day."""
        raise NotImplementedError

    def months_and_days(self, args: Arguments, nominal: datetime, frequency: Frequency) -> tuple[int, int] | None:
        """Calendar months, then days, to the point, from every nominal time; None where it is not always the same."""
        raise NotImplementedError

    def value(self, args: Arguments, nominal: datetime, timezone: str) -> datetime:
        point = self.point(start_of_day(to_wall(nominal, timezone)), args)
        return from_wall(point + self._added(args), timezone)

    def span(self, args: Arguments) -> Span:
        (least, most), added = self.age, self._added(args)
        return added - (most + 1) * _DAY, added - (least - 1) * _DAY

    def shift(self, args: Arguments, nominal: datetime, frequency: Frequency) -> tuple[int, timedelta] | None:
        is_monthly = frequency.unit is TimeUnit.MONTHS
        keeps_time_of_day = nominal.day <= 28 if is_monthly else frequency.length % _DAY == _ZERO
        found = self.months_and_days(args, nominal, frequency) if keeps_time_of_day else None
        if found is None:
            return None
        months, days = found
        return months, days * _DAY + self._added(args) - (nominal - start_of_day(nominal))

    def _added(self, args: Arguments) -> timedelta:
        *rest, hours, minutes = args
        days = rest[-1] if rest and isinstance(rest[-1], int) else 0
        return timedelta(days=days) + timedelta(hours=hours, minutes=minutes)


class _Day(_OnCalendar):
    def point(self, today: datetime, args: Arguments) -> datetime:
        return today + self.steps * _DAY

    def months_and_days(self, args: Arguments, nominal: datetime, frequency: Frequency) -> tuple[int, int] | None:
        return 0, self.steps


class _Week(_OnCalendar):
    def point(self, today: datetime, args: Arguments) -> datetime:
        return today + self._days(today, args) * _DAY

    def months_and_days(self, args: Arguments, nominal: datetime, frequency: Frequency) -> tuple[int, int] | None:
        is_weekly = frequency.unit is not TimeUnit.MONTHS and frequency.length % (7 * _DAY) == _ZERO
        return (0, self._days(nominal, args)) if is_weekly else None

    def _days(self, today: datetime, args: Arguments) -> int:
        # SUN is 0 in WEEKDAYS and 7 in isoweekday().
        return int(7 * self.steps - (today.isoweekday() - WEEKDAYS.index(args[0])) % 7)


class _Month(_OnCalendar):
    def point(self, today: datetime, args: Arguments) -> datetime:
        return add_months(today.replace(day=1), self.steps)

    def months_and_days(self, args: Arguments, nominal: datetime, frequency: Frequency) -> tuple[int, int] | None:
        # First of that month, seen from the same day of that month.
        return (self.steps, 1 - nominal.day) if frequency.unit is TimeUnit.MONTHS else None


class _Year(_OnCalendar):
    def point(self, today: datetime, args: Arguments) -> datetime:
        return add_months(today.replace(month=1, day=1), 12 * self.steps + args[0])

    def months_and_days(self, args: Arguments, nominal: datetime, frequency: Frequency) -> tuple[int, int] | None:
        is_yearly = frequency.unit is TimeUnit.MONTHS and frequency.count % 12 == 0
        return (12 * self.steps - (nominal.month - 1) + args[0], 1 - nominal.day) if is_yearly else None

    def span(self, args: Arguments) -> Span:
        (low, high), (least, most) = super().span(args), _steps(args[0], _DAYS["MONTH"])
        return low + least, high + most


class _FormatTime(TextFunction):
    def problem(self, args: Arguments) -> str | None:
        for position, arg in enumerate(args[1:], start=2):
            if not isinstance(arg, str):
                return f"argument {position} of formatTime must be written in quotes"
        if len(args) > 2 and args[2] not in zones():
            return f"argument 3 of formatTime must be an IANA time zone, such as 'UTC', not {args[2]!r}"
        return None

    def text(self, args: Arguments, timezone: str, user: str) -> str:
        """On the wall clock of the zone given, else ``timezone``; by a date pattern of Java and of Unicode's LDML."""
        from babel.dates import PATTERN_CHARS, format_datetime  # noqa: PLC0415 - most processes format nothing

        moment, pattern, timezone = (*args, timezone)[:3]
        bare = _QUOTED.sub("", pattern)
        # Babel prints what it does not know as it stands; Java calls it illegal, and a typo must not get into a path.
        if "'" in bare:
            raise ExpressionError(f"{pattern!r} is not a date pattern: a quote is not closed")
        unknown = sorted({char for char in bare if char.isalpha() and char not in PATTERN_CHARS})
        if unknown:
            raise ExpressionError(f"{pattern!r} is not a date pattern: unknown letter(s) {', '.join(unknown)}")
        try:
            return format_datetime(moment, pattern, tzinfo=zone(timezone), locale="en_US")
        except (ValueError, KeyError) as error:
            raise ExpressionError(f"{pattern!r} is not a date pattern: {error}") from None


class _User(TextFunction):
    def text(self, args: Arguments, timezone: str, user: str) -> str:
        return user


class LedgerFunction(Function):
    """A function whose value is state of the ledger: properties of processes can have it, windows and paths cannot."""


class _Latest(Function):
    def problem(self, args: Arguments) -> str | None:
        return "latest(n) counts backwards: n must be 0 or negative" if args[0] > 0 else None


class _Future(Function):
    def problem(self, args: Arguments) -> str | None:
        n, limit = args
        return "future(n,limit) takes n >= 0 and a limit greater than n" if n < 0 or limit <= n else None


def _steps(number: int, days: tuple[int, int]) -> Span:
    ends = (number * days[0] * _DAY, number * days[1] * _DAY)
    return min(ends), max(ends)


FUNCTIONS: dict[str, Function] = {
    "now": _Now((_N, _N)),
    "today": _Day(age=(0, 1)),
    "yesterday": _Day(steps=-1, age=(1, 2)),
    "currentWeek": _Week((Kind.WEEKDAY, _N, _N), age=(0, 7)),
    "lastWeek": _Week((Kind.WEEKDAY, _N, _N), steps=-1, age=(7, 14)),
    "currentMonth": _Month((_N, _N, _N), age=(0, 31)),
    "lastMonth": _Month((_N, _N, _N), steps=-1, age=(28, 62)),
    "currentYear": _Year((_N, _N, _N, _N), age=(0, 366)),
    "lastYear": _Year((_N, _N, _N, _N), steps=-1, age=(365, 732)),
    "instanceTime": _Now(),
    "dateOffset": _DateOffset((Kind.TIME, _N, Kind.TEXT)),
    "formatTime": _FormatTime((Kind.TIME, Kind.TEXT, Kind.TEXT), Kind.TEXT, optional=1),
    "user": _User(result=Kind.TEXT),
    "latest": _Latest((_N,), Kind.INSTANCES),
    "future": _Future((_N, _N), Kind.INSTANCES),
    "watermark": LedgerFunction((Kind.TEXT,)),
}
"""By name. What ``latest`` and ``future`` find depends on what is available: see ``planning.windows.input_windows``."""
