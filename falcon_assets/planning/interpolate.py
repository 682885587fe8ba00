"""Filling the holes of properties, partitions and arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypeAlias

from falcon_assets.errors import ExpressionError
from falcon_assets.model.expression import Argument, Call
from falcon_assets.model.expression_functions import FUNCTIONS, Kind, LedgerFunction
from falcon_assets.model.instant import format_instant
from falcon_assets.model.template import Part, Variable, parse_template, value_of
from falcon_assets.planning.expressions import evaluate_text, evaluate_time

Watermark: TypeAlias = Callable[[str], datetime]
"""Returns the watermark of the feed of that name on the cluster; raises FalconError where it has none there."""


def interpolate(
    text: str,
    values: Mapping[str, str],
    nominal: datetime,
    timezone: str,
    user: str,
    watermark: Watermark | None = None,
) -> str:
    """Replaces each ``${...}`` once, not again in values; raises ExpressionError where one has no value here.

    ``watermark`` None: the state of the ledger has no place here, or is not known.
    """

    def piece(part: Part) -> str:
        if isinstance(part, str):
            return part
        if isinstance(part, Variable):
            return value_of(text, part, values)
        return _value(_with_state(part, watermark), nominal, timezone, user)

    return "".join(map(piece, parse_template(text)))


def _with_state(call: Argument, watermark: Watermark | None) -> Argument:
    """The expression with the watermarks in it as instants."""
    if not isinstance(call, Call):
        return call
    if not isinstance(FUNCTIONS[call.name], LedgerFunction):
        return Call(call.name, tuple(_with_state(arg, watermark) for arg in call.args))
    if watermark is None:
        raise ExpressionError(f"{call.name}(...) is known only where an instance runs, in the properties of a process")
    return format_instant(watermark(str(call.args[0])))


def _value(call: Argument, nominal: datetime, timezone: str, user: str) -> str:
    if not isinstance(call, Call):
        return str(call)
    if call.kind is Kind.TEXT:
        return evaluate_text(call, nominal, timezone, user)
    return format_instant(evaluate_time(call, nominal, timezone))
