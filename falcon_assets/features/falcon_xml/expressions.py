"""Expressions of Oozie's coordinators in properties and arguments, translated where there is a counterpart.

Falcon passed them to Oozie, with the functions of its coordinators (``coord:...``) and its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from falcon_assets.errors import ExpressionError
from falcon_assets.model.expression import Argument, Call, parse_expression
from falcon_assets.model.expression_functions import WEEKDAYS

_HOLE = re.compile(r"\$\{([^{}]*)\}")
_WORD = re.compile(r"'[^']*'|\"[^\"]*\"|\bcoord:(\w+)")
_FOLDER = re.compile(r"\s*coord:data(?:In|Out)\(\s*['\"]([\w-]+)['\"]\s*\)\s*")
_PLACE = re.compile(r"data(In|Out)\w*|tableIn|tableOut|databaseIn|databaseOut")
COUNTERPARTS: Mapping[str, str] = {
    "nominalTime": "instanceTime", "formatTime": "formatTime", "dateOffset": "dateOffset", "user": "user",
}  # fmt: skip
"""Function of Oozie's coordinators -> function here."""
_ADVICE: Mapping[str, str] = {
    "actualTime": "properties are the same whenever an instance runs: instanceTime() is its nominal time",
    "actionId": "${process.name} and ${nominalTime} say which instance it is",
    "name": "${process.name} is the name of the process",
    "conf": "write the value, or name a property of the cluster as ${NAME}",
}
_IN_UTC = {"DAY": ("HOUR", 24), "MINUTE": ("MINUTE", 1), "HOUR": ("HOUR", 1)}


class UntranslatableError(Exception):
    """An expression has no counterpart; the text is a sentence."""


def translated(text: str, zone: str, *, is_argument: bool = False) -> str:
    """Translates the expressions in a property or an argument.

    Expressions use ``zone``, that of the process, here; Oozie used UTC. Only arguments may name folders of inputs and
    outputs. Raises UntranslatableError where an expression has no counterpart.
    """
    return _HOLE.sub(lambda hole: _hole(hole, zone, is_argument=is_argument), text)


def _hole(hole: re.Match[str], zone: str, *, is_argument: bool) -> str:
    folder = _FOLDER.fullmatch(hole[1]) if is_argument else None
    if folder:
        return f"${{{folder[1]}}}"
    for name in (found[1] for found in _WORD.finditer(hole[1]) if found[1]):
        if name not in COUNTERPARTS:
            raise UntranslatableError(f"{hole[0]}: coord:{name} has no counterpart; {_advice(name)}")
    inner = _WORD.sub(lambda word: COUNTERPARTS[word[1]] if word[1] else word[0], hole[1])
    is_of_oozie = inner != hole[1]
    try:
        call = parse_expression(inner)
    except ExpressionError as error:
        if is_of_oozie:
            raise UntranslatableError(f"{hole[0]}: {error}") from None
        return hole[0]  # a variable, or what validation says
    filled = call if zone == "UTC" else _in_utc(call)
    return f"${{{_written(filled)}}}" if is_of_oozie or filled != call else hole[0]


def _advice(name: str) -> str:
    if _PLACE.fullmatch(name):
        return "workflows are given their inputs and outputs by name"
    return _ADVICE.get(name, "see the reference page Expressions for the known functions")


def _in_utc(call: Call) -> Call:
    """Rewrites a call so that it has the value that it has in UTC, at any nominal time."""
    call = replace(call, args=tuple(_in_utc(arg) if isinstance(arg, Call) else arg for arg in call.args))
    if call.name == "formatTime" and len(call.args) == 2:
        return replace(call, args=(*call.args, "UTC"))
    if call.name == "dateOffset":
        moment, number, unit = call.args
        if unit not in _IN_UTC or not isinstance(number, int):
            raise UntranslatableError(f"{_written(call)}: Falcon counted in UTC, and dateOffset in the process's zone")
        of_utc, times = _IN_UTC[str(unit)]
        return replace(call, args=(moment, number * times, of_utc))
    return call


def _written(argument: Argument) -> str:
    if isinstance(argument, Call):
        return f"{argument.name}({', '.join(map(_written, argument.args))})"
    if isinstance(argument, int):
        return str(argument)
    if argument in WEEKDAYS:
        return argument
    quote = '"' if "'" in argument else "'"
    return f"{quote}{argument}{quote}"
