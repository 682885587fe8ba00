"""Filling the holes of properties, partitions and arguments."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from falcon_assets.model.expression import Call
from falcon_assets.model.expression_functions import Kind
from falcon_assets.model.instant import format_instant
from falcon_assets.model.template import Part, Variable, parse_template, value_of
from falcon_assets.planning.expressions import evaluate_text, evaluate_time


def interpolate(text: str, values: Mapping[str, str], nominal: datetime, timezone: str, user: str) -> str:
    """Replaces each ``${...}`` once, not again in values; raises ExpressionError where one has no value here."""

    def piece(part: Part) -> str:
        if isinstance(part, str):
            return part
        if isinstance(part, Variable):
            return value_of(text, part, values)
        return _value(part, nominal, timezone, user)

    return "".join(map(piece, parse_template(text)))


def _value(call: Call, nominal: datetime, timezone: str, user: str) -> str:
    if call.kind is Kind.TEXT:
        return evaluate_text(call, nominal, timezone, user)
    return format_instant(evaluate_time(call, nominal, timezone))
