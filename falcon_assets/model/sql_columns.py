"""Columns and values in Spark's SQL, whatever their names are and whatever the zone of the session is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import TypeAlias

from falcon_assets.errors import ExpressionError
from falcon_assets.model.expression import nearest
from falcon_assets.model.spark_schema import SparkType

Scalar: TypeAlias = bool | int | float | str
NUMBERS = ("tinyint", "smallint", "int", "bigint", "decimal", "float", "double")
FRACTIONS = ("float", "double")
"""Types with a NaN, which Spark takes for the largest value."""
TIMES = ("timestamp", "timestamp_ntz", "date")
_STEP = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")
_PLAIN_TEXT = re.compile(r"(?:(?!\$\{)[^'\\\x00-\x1f])*")
_LONGEST_DECIMAL = 38
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class SqlColumn:
    """A column of the data, or a field of a struct in one; ``kind`` as in :class:`.SparkType`."""

    name: str
    sql: str
    kind: str


def find_column(row: SparkType, name: str) -> SqlColumn:
    """Finds a column by its whole name, with dots if it has some, else a field by its path; case does not matter.

    Raises:
        ExpressionError: there is none; names the nearest.
    """
    whole = _field(row, name)
    if whole is not None:
        return SqlColumn(name, quoted_name(whole[0]), whole[1].kind)
    steps, at, names = [one[1].replace("``", "`") if one[1] else one[2] for one in _STEP.finditer(name)], row, []
    for step in steps:
        found = _field(at, step)
        if found is None:
            known = [one for one, _ in at.fields]
            listed = f"; there is: {', '.join(known)}" if 0 < len(known) <= 10 else ""
            raise ExpressionError(f"there is no column {name!r}{nearest(step, known) or listed}")
        names.append(quoted_name(found[0]))
        at = found[1]
    return SqlColumn(name, ".".join(names), at.kind)


def _field(row: SparkType, name: str) -> tuple[str, SparkType] | None:
    exact = [one for one in row.fields if one[0] == name]
    return next(iter(exact or [one for one in row.fields if one[0].lower() == name.lower()]), None)


def quoted_name(name: str) -> str:
    """A name in Spark's quotes."""
    return f"`{name.replace('`', '``')}`"


def text_literal(text: str) -> str:
    r"""A text that no setting of the session reads as anything else: not ``\\``, not ``${...}``."""
    if _PLAIN_TEXT.fullmatch(text):
        return f"'{text}'"
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


def literal(value: Scalar, column: SqlColumn) -> str:
    """The value as Spark compares it with the column.

    Raises:
        ExpressionError: values of the column cannot be compared with it.
    """
    made = None
    if column.kind in NUMBERS:
        made = _number(value, column.kind)
    elif column.kind == "string" and isinstance(value, str):
        made = text_literal(value)
    elif column.kind == "boolean" and isinstance(value, bool):
        made = str(value).lower()
    elif column.kind in TIMES and isinstance(value, str):
        made = _time(value, column.kind)
    if made is None:
        raise ExpressionError(f"{value!r} is not comparable with {column.name}, which is of type {column.kind}")
    return made


def _number(value: Scalar, kind: str) -> str | None:
    try:
        number = None if isinstance(value, bool) else Decimal(str(value))
    except InvalidOperation:
        return None
    if number is None or not number.is_finite():
        return None
    plain = format(number, "f")
    made = plain if sum(map(str.isdigit, plain)) <= _LONGEST_DECIMAL else f"{float(number)!r}D"
    return f"CAST({made} AS FLOAT)" if kind == "float" else made


def _time(value: str, kind: str) -> str | None:
    moment = moment_of(value)
    if moment is None:
        return None
    if kind == "timestamp":
        return f"timestamp_micros({micros(moment)})"
    plain = moment.replace(tzinfo=None).isoformat(" ", "microseconds")
    return f"TIMESTAMP_NTZ '{plain}'" if kind == "timestamp_ntz" else f"DATE '{date.isoformat(moment)}'"


def moment_of(text: str) -> datetime | None:
    """Reads a date or a time, in UTC where it has no zone; None: it is neither."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def micros(moment: datetime) -> int:
    """Microseconds since 1970."""
    passed = moment - _EPOCH
    return (passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds


def newest(value: str, kind: str) -> str:
    """The largest of a column of times, as a number of microseconds or a text in UTC, which no zone changes."""
    return f"unix_micros(max({value}))" if kind == "timestamp" else f"CAST(max({value}) AS STRING)"


def moment_from(found: int | str) -> datetime | None:
    """What :func:`newest` found; None: it is beyond the years 1 to 9999."""
    if isinstance(found, str):
        return moment_of(found)
    try:
        return datetime.fromtimestamp(0, UTC) + (datetime.resolution * found)
    except OverflowError:
        return None
