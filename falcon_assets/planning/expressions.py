"""How far from the nominal time the value of an expression can lie: what keeps inverse searches small."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from falcon_assets.errors import ExpressionError
from falcon_assets.model.expression import Call
from falcon_assets.model.expression_functions import (
    ANYWHERE,
    FUNCTIONS,
    Arguments,
    Kind,
    Span,
    TextFunction,
    TimeFunction,
)
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.planning.timeline import Timeline


def expression_bounds(call: Call) -> Span:
    """Least and greatest value of ``resolved time - nominal time``, over all nominal times and zones.

    Exact for ``now`` and ``instanceTime``. A ``dateOffset`` from a quoted instant can lie anywhere.

    Raises:
        ExpressionError: the call is no time.
    """
    try:
        return _span(call)
    except OverflowError:
        return ANYWHERE


def _span(call: Call) -> Span:
    function = FUNCTIONS[call.name]
    if not isinstance(function, TimeFunction):
        raise ExpressionError(f"{call.name}(...) is no time")
    args = (
        arg if kind is not Kind.TIME else _span(arg) if isinstance(arg, Call) else ANYWHERE
        for arg, kind in zip(call.args, function.arguments, strict=False)
    )
    return function.span(tuple(args))


def evaluate_time(call: Call, nominal: datetime, timezone: str) -> datetime:
    """The moment that ``call`` means, in UTC.

    Args:
        call: A call whose kind is a time.
        nominal: The nominal time of the process instance.
        timezone: IANA name of the process's zone.

    Raises:
        ExpressionError: the call is no time (``latest``, ``future``, a text), or the result is beyond year 1 to 9999.
    """
    function = FUNCTIONS[call.name]
    if not isinstance(function, TimeFunction):
        raise ExpressionError(f"{call.name}(...) gives {_result(call)}, not a time")
    try:
        args = _with_times(call, nominal, timezone) if function.takes_times else call.args
        return function.value(args, nominal, timezone)
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
    function = FUNCTIONS[call.name]
    if not isinstance(function, TextFunction):
        raise ExpressionError(f"{call.name}(...) gives {_result(call)}, not a text")
    return function.text(_with_times(call, nominal, timezone), timezone, user)


def _with_times(call: Call, nominal: datetime, timezone: str) -> Arguments:
    """The arguments of the call, those that are times as moments."""
    return tuple(
        arg
        if kind is not Kind.TIME
        else evaluate_time(arg, nominal, timezone)
        if isinstance(arg, Call)
        else parse_instant(str(arg))
        for arg, kind in zip(call.args, FUNCTIONS[call.name].arguments, strict=False)
    )


def _result(call: Call) -> str:
    return call.kind.value.replace("quoted ", "")


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
    """Absolute time from the nominal time to ``call``; None where it depends on a calendar, or the call is no time."""
    function = FUNCTIONS[call.name]
    return function.absolute(call.args) if isinstance(function, TimeFunction) else None


def wall_shift(call: Call, process: Timeline) -> Shift | None:
    """The shift of ``call``, None where it is not the same for every instance of ``process``.

    Speaks of the wall clock: whether the zone lets the nominal times keep theirs is for the caller to check.
    """
    absolute = absolute_shift(call)
    if absolute is not None:
        return Shift(0, absolute, is_on_the_wall=absolute == _ZERO)
    function = FUNCTIONS[call.name]
    found = (
        function.shift(call.args, process.local_start, process.frequency)
        if isinstance(function, TimeFunction)
        else None
    )
    return None if found is None else Shift(*found)
