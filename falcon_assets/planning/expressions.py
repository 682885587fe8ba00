"""Evaluates expressions, and bounds how far from the nominal time they lie."""

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
    """Bounds of ``resolved time - nominal time`` over all nominal times and zones, which keep inverse searches small.

    Exact for ``now`` and ``instanceTime``; a ``dateOffset`` from a quoted instant can lie anywhere. Raises
    ExpressionError where the call is no time.
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
    """Resolves to UTC; raises ExpressionError where the call is no time, or the time is beyond the years 1 to 9999."""
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
    """Raises ExpressionError where the call is no text, or its date pattern or its time is not legal."""
    function = FUNCTIONS[call.name]
    if not isinstance(function, TextFunction):
        raise ExpressionError(f"{call.name}(...) gives {_result(call)}, not a text")
    return function.text(_with_times(call, nominal, timezone), timezone, user)


def _with_times(call: Call, nominal: datetime, timezone: str) -> Arguments:
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
    """Calendar months, then time on the wall clock (else absolute time, as ``now`` adds it), from the nominal time."""

    months: int
    time: timedelta
    is_on_the_wall: bool = True

    @property
    def length(self) -> timedelta:
        return abs(self.time) + 31 * abs(self.months) * _DAY

    @property
    def floored_months(self) -> int:
        return self.months - (self.time < _ZERO)

    @property
    def is_short(self) -> bool:
        return abs(self.time) < _SHORTEST_MONTH

    def is_before_or_at(self, other: Shift) -> bool:
        return self.time <= other.time + (other.months - self.months) * _SHORTEST_MONTH and self.months <= other.months


def absolute_shift(call: Call) -> timedelta | None:
    """None where the time depends on a calendar, or the call is no time."""
    function = FUNCTIONS[call.name]
    return function.absolute(call.args) if isinstance(function, TimeFunction) else None


def wall_shift(call: Call, process: Timeline) -> Shift | None:
    """The shift of ``call``; None where instances differ. Callers check that the zone leaves nominal times in place."""
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
