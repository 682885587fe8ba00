"""Texts with ``${...}`` in them: paths, properties, workflow arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from falcon_assets.errors import ExpressionError
from falcon_assets.model.expression import Call, nearest, parse_expression

_HOLE = re.compile(r"\$\{([^{}]*)\}")
_VARIABLE = re.compile(r"[A-Za-z_][\w.-]*")


@dataclass(frozen=True)
class Variable:
    """A name to be replaced by its value."""

    name: str


Part: TypeAlias = str | Variable | Call


def parse_template(text: str) -> tuple[Part, ...]:
    """The literal pieces, variables and expression calls of ``text``, in order.

    Raises:
        ExpressionError: a hole that is neither a name nor an expression, or one that is not closed.
    """
    parts: list[Part] = []
    for number, piece in enumerate(_HOLE.split(text)):
        inner = piece.strip()
        if number % 2:  # what is in a hole
            parts.append(Variable(inner) if _VARIABLE.fullmatch(inner) else parse_expression(inner))
        elif "${" in piece:
            raise ExpressionError(f"{text!r}: a '${{' is not closed")
        elif piece:
            parts.append(piece)
    return tuple(parts)


def value_of(text: str, variable: Variable, values: Mapping[str, str]) -> str:
    """The value of ``variable``.

    Raises:
        ExpressionError: no such variable; names the template and the nearest known name.
    """
    try:
        return values[variable.name]
    except KeyError:
        raise ExpressionError(
            f"{text!r}: unknown variable '${{{variable.name}}}'{nearest(variable.name, values)}"
        ) from None
