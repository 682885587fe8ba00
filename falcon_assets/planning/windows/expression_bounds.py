"""How far from the nominal time the value of an expression can lie: what keeps inverse searches small."""

from __future__ import annotations

from datetime import timedelta

from falcon_assets.model.expression import Call

_DAY = timedelta(days=1)
_ANYWHERE = (timedelta.min / 4, timedelta.max / 4)
_ANCHOR_AGE = {
    "today": (0, 1),
    "yesterday": (1, 2),
    "currentWeek": (0, 7),
    "lastWeek": (7, 14),
    "currentMonth": (0, 31),
    "lastMonth": (28, 62),
    "currentYear": (0, 366),
    "lastYear": (365, 732),
}
"""How many days before the nominal time the calendar point lies that the function adds to: least, most."""
_MONTH_DAYS = (28, 31)
_YEAR_DAYS = (365, 366)


def expression_bounds(call: Call) -> tuple[timedelta, timedelta]:
    """Least and greatest value of ``resolved time - nominal time``, over all nominal times and zones.

    Exact for ``now`` and ``instanceTime``. Calendar functions get a day of slack on either side for what a
    zone can do to a wall clock. A ``dateOffset`` from a quoted instant can lie anywhere.
    """
    try:
        return _bounds(call)
    except OverflowError:
        return _ANYWHERE


def _bounds(call: Call) -> tuple[timedelta, timedelta]:
    if call.name == "instanceTime":
        return timedelta(), timedelta()
    if call.name == "dateOffset":
        return _date_offset(call)
    numbers = [arg for arg in call.args if isinstance(arg, int)]
    added = timedelta(hours=numbers[-2], minutes=numbers[-1])
    if call.name == "now":
        return added, added
    least, most = _ANCHOR_AGE[call.name]
    if len(numbers) > 2:
        added += timedelta(days=numbers[-3])
    months = _steps(numbers[-4], _MONTH_DAYS) if len(numbers) > 3 else (timedelta(), timedelta())
    return added + months[0] - (most + 1) * _DAY, added + months[1] - (least - 1) * _DAY


def _date_offset(call: Call) -> tuple[timedelta, timedelta]:
    base, number, unit = call.args
    if not isinstance(base, Call) or not isinstance(number, int):
        return _ANYWHERE
    low, high = _bounds(base)
    if unit in ("MINUTE", "HOUR"):
        step = number * timedelta(**{f"{str(unit).lower()}s": 1})
        return low + step, high + step
    days = {"DAY": (1, 1), "MONTH": _MONTH_DAYS, "YEAR": _YEAR_DAYS}[str(unit)]
    # A month end that is cut short (31 January + 1 month) may cost three days more.
    least, most = _steps(number, days)
    return low + least - 4 * _DAY, high + most + 4 * _DAY


def _steps(number: int, days: tuple[int, int]) -> tuple[timedelta, timedelta]:
    ends = (number * days[0] * _DAY, number * days[1] * _DAY)
    return min(ends), max(ends)
