"""How far from the nominal time the value of an expression can lie: what keeps inverse searches small."""

from __future__ import annotations

from falcon_assets.errors import ExpressionError
from falcon_assets.model.expression import Call
from falcon_assets.model.expression_functions import ANYWHERE, FUNCTIONS, Kind, Span, TimeFunction


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
