"""Where an expression lies relative to the nominal time, where that is the same for every instance of a process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from falcon_assets.model.expression import WEEKDAYS, Call
from falcon_assets.model.frequency import TimeUnit
from falcon_assets.planning.time.timeline import Timeline
from falcon_assets.planning.time.wall_clock import start_of_day

_DAY = timedelta(days=1)
_ZERO = timedelta()
_SHORTEST_MONTH = 28 * _DAY


@dataclass(frozen=True)
class Shift:
    """Calendar months, then time on the wall clock, from the nominal time.

    Attributes:
        months: Calendar months.
        time: Added after them.
        is_on_the_wall: False where ``time`` is absolute time, as ``now`` adds it.
    """

    months: int
    time: timedelta
    is_on_the_wall: bool = True

    @property
    def length(self) -> timedelta:
        """An upper bound of its length."""
        return abs(self.time) + 31 * abs(self.months) * _DAY

    @property
    def floored_months(self) -> int:
        """Months to the latest whole month at or before it; of a short shift only."""
        return self.months - (self.time < _ZERO)

    @property
    def is_short(self) -> bool:
        """Whether it stays within a month of a whole number of months."""
        return abs(self.time) < _SHORTEST_MONTH

    def is_before_or_at(self, other: Shift) -> bool:
        """Whether it never lies after ``other``, by the shortest months there are."""
        return self.time <= other.time + (other.months - self.months) * _SHORTEST_MONTH and self.months <= other.months


def absolute_shift(call: Call) -> timedelta | None:
    """Absolute time from the nominal time to ``call``; None where it depends on a calendar."""
    if call.name == "instanceTime":
        return _ZERO
    if call.name == "now":
        hours, minutes = (arg for arg in call.args if isinstance(arg, int))
        return timedelta(hours=hours, minutes=minutes)
    return None


def wall_shift(call: Call, process: Timeline) -> Shift | None:
    """The shift of ``call``, None where it is not the same for every instance of ``process``.

    Speaks of the wall clock: whether the zone lets the nominal times keep theirs is for the caller to check.
    """
    absolute = absolute_shift(call)
    if absolute is not None:
        return Shift(0, absolute, is_on_the_wall=absolute == _ZERO)
    nominal = process.local_start
    rule = _RULES.get(call.name)
    months = rule(nominal, process, call) if rule and _keeps_time_of_day(process, nominal) else None
    if months is None:
        return None
    numbers = [arg for arg in call.args if isinstance(arg, int)]
    added = timedelta(hours=numbers[-2], minutes=numbers[-1]) - (nominal - start_of_day(nominal))
    if len(numbers) > 2:
        added += timedelta(days=numbers[-3])
    return Shift(months.months, months.time + added)


def _keeps_time_of_day(process: Timeline, nominal: datetime) -> bool:
    if process.frequency.unit is TimeUnit.MONTHS:
        return nominal.day <= 28
    return process.frequency.length % _DAY == _ZERO


def _from_day(days: int) -> Callable[[datetime, Timeline, Call], Shift | None]:
    return lambda nominal, process, call: Shift(0, days * _DAY)


def _from_week(weeks: int) -> Callable[[datetime, Timeline, Call], Shift | None]:
    def rule(nominal: datetime, process: Timeline, call: Call) -> Shift | None:
        if process.frequency.unit is TimeUnit.MONTHS or process.frequency.length % (7 * _DAY):
            return None
        back = (nominal.isoweekday() - WEEKDAYS.index(str(call.args[0]))) % 7
        return Shift(0, (7 * weeks - back) * _DAY)

    return rule


def _from_month(months: int) -> Callable[[datetime, Timeline, Call], Shift | None]:
    def rule(nominal: datetime, process: Timeline, call: Call) -> Shift | None:
        if process.frequency.unit is not TimeUnit.MONTHS:
            return None
        return _to_first(nominal, months)

    return rule


def _from_year(years: int) -> Callable[[datetime, Timeline, Call], Shift | None]:
    def rule(nominal: datetime, process: Timeline, call: Call) -> Shift | None:
        if process.frequency.unit is not TimeUnit.MONTHS or process.frequency.count % 12:
            return None
        added = call.args[0]
        return _to_first(nominal, 12 * years - (nominal.month - 1) + added) if isinstance(added, int) else None

    return rule


def _to_first(nominal: datetime, months: int) -> Shift:
    # First of that month, seen from the same day of that month.
    return Shift(months, (1 - nominal.day) * _DAY)


_RULES: dict[str, Callable[[datetime, Timeline, Call], Shift | None]] = {
    "today": _from_day(0),
    "yesterday": _from_day(-1),
    "currentWeek": _from_week(0),
    "lastWeek": _from_week(-1),
    "currentMonth": _from_month(0),
    "lastMonth": _from_month(-1),
    "currentYear": _from_year(0),
    "lastYear": _from_year(-1),
}
