"""What expressions mean at a nominal time (source: Apache Falcon's expression language).

``now`` adds absolute time to the nominal time. The functions named after a day, week, month or year start from the
calendar of the process's zone and add on the *wall clock*, so ``today(0,0)`` to ``today(23,0)`` covers every hour of a
day of 23 or 25 hours just as it does every other day.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import cast

from babel.dates import PATTERN_CHARS, format_datetime

from falcon_assets.errors import ExpressionError
from falcon_assets.model.expression import WEEKDAYS, Argument, Call, Kind
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.model.shared import zone
from falcon_assets.planning.time.wall_clock import add_months, from_wall, start_of_day, to_wall

_ABSOLUTE_UNITS = {"MINUTE": timedelta(minutes=1), "HOUR": timedelta(hours=1)}
_RESULTS = {Kind.TIME: "a time", Kind.TEXT: "a text", Kind.INSTANCES: "available instances"}
_QUOTED = re.compile(r"'[^']*'")


def evaluate_time(call: Call, nominal: datetime, timezone: str) -> datetime:
    """The moment that ``call`` means, in UTC.

    Args:
        call: A call whose kind is a time.
        nominal: The nominal time of the process instance.
        timezone: IANA name of the process's zone.

    Raises:
        ExpressionError: the call is no time (``latest``, ``future``, a text), or the result is beyond year 1 to 9999.
    """
    if call.kind is not Kind.TIME:
        raise ExpressionError(f"{call.name}(...) gives {_RESULTS[call.kind]}, not a time")
    try:
        return _time(call, nominal, timezone)
    except (OverflowError, ValueError) as error:
        if isinstance(error, ExpressionError):
            raise
        raise ExpressionError(
            f"{call.name}(...) at {format_instant(nominal)} lies outside the years 1 to 9999"
        ) from None


def evaluate_text(call: Call, nominal: datetime, timezone: str, user: str) -> str:
    """The text that ``call`` means: ``formatTime``'s in the process's zone, ``user()``'s as given.

    Raises:
        ExpressionError: the call is no text, or its date pattern or its time is not legal.
    """
    if call.name == "user":
        return user
    if call.name != "formatTime":
        raise ExpressionError(f"{call.name}(...) gives {_RESULTS[call.kind]}, not a text")
    moment, pattern = call.args
    return _format(_argument(moment, nominal, timezone), str(pattern), timezone)


def _time(call: Call, nominal: datetime, timezone: str) -> datetime:
    if call.name == "instanceTime":
        return nominal
    if call.name == "now":
        return nominal + _clock(*_numbers(call.args))
    if call.name == "dateOffset":
        return _date_offset(call, nominal, timezone)
    today = start_of_day(to_wall(nominal, timezone))
    return from_wall(_CALENDAR[call.name](today, call.args), timezone)


def _argument(value: Argument, nominal: datetime, timezone: str) -> datetime:
    return evaluate_time(value, nominal, timezone) if isinstance(value, Call) else parse_instant(str(value))


def _date_offset(call: Call, nominal: datetime, timezone: str) -> datetime:
    base, unit = _argument(call.args[0], nominal, timezone), str(call.args[2])
    (number,) = _numbers(call.args[1:2])
    if unit in _ABSOLUTE_UNITS:
        return base + number * _ABSOLUTE_UNITS[unit]
    wall = to_wall(base, timezone)
    if unit == "DAY":
        return from_wall(wall + timedelta(days=number), timezone)
    return from_wall(add_months(wall, number * (12 if unit == "YEAR" else 1)), timezone)


def _numbers(args: tuple[Argument, ...]) -> tuple[int, ...]:
    # The grammar has checked the kinds already: see SIGNATURES.
    return cast("tuple[int, ...]", args)


def _clock(hours: int, minutes: int) -> timedelta:
    return timedelta(hours=hours, minutes=minutes)


def _day(today: datetime, args: tuple[Argument, ...], days: int) -> datetime:
    return today + timedelta(days=days) + _clock(*_numbers(args))


def _week(today: datetime, args: tuple[Argument, ...], weeks: int) -> datetime:
    # SUN is 0 in WEEKDAYS and 7 in isoweekday().
    back = (today.isoweekday() - WEEKDAYS.index(str(args[0]))) % 7
    return today + timedelta(days=-back, weeks=weeks) + _clock(*_numbers(args[1:]))


def _month(today: datetime, args: tuple[Argument, ...], months: int) -> datetime:
    days, hours, minutes = _numbers(args)
    return add_months(today.replace(day=1), months) + timedelta(days=days) + _clock(hours, minutes)


def _year(today: datetime, args: tuple[Argument, ...], years: int) -> datetime:
    months, days, hours, minutes = _numbers(args)
    first = add_months(today.replace(month=1, day=1), 12 * years + months)
    return first + timedelta(days=days) + _clock(hours, minutes)


_CALENDAR: dict[str, Callable[[datetime, tuple[Argument, ...]], datetime]] = {
    "today": lambda today, args: _day(today, args, 0),
    "yesterday": lambda today, args: _day(today, args, -1),
    "currentWeek": lambda today, args: _week(today, args, 0),
    "lastWeek": lambda today, args: _week(today, args, -1),
    "currentMonth": lambda today, args: _month(today, args, 0),
    "lastMonth": lambda today, args: _month(today, args, -1),
    "currentYear": lambda today, args: _year(today, args, 0),
    "lastYear": lambda today, args: _year(today, args, -1),
}


def _format(moment: datetime, pattern: str, timezone: str) -> str:
    """``moment`` on the wall clock of ``timezone``, by a date pattern of Java and of Unicode's LDML."""
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
