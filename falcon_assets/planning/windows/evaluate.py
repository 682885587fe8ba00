"""What expressions mean at a nominal time."""

from __future__ import annotations

from datetime import datetime

from falcon_assets.errors import ExpressionError
from falcon_assets.model.expression import Call
from falcon_assets.model.expression_functions import FUNCTIONS, Arguments, Kind, TextFunction, TimeFunction
from falcon_assets.model.instant import format_instant, parse_instant


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
