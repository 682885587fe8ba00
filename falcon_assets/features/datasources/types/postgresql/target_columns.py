"""Columns of a target in PostgreSQL, and which columns of feeds fit them, so that every value arrives as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from psycopg2.extensions import cursor as Cursor  # noqa: N812 - it is a class

from falcon_assets.features.datasources.types.postgresql.binary_rows import Encoding

_COLUMNS = """
    SELECT a.attname, format_type(a.atttypid, a.atttypmod),
           b.oid, CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END,
           CASE WHEN b.typcategory = 'A' THEN b.typelem ELSE 0 END,
           a.attnotnull OR t.typnotnull, a.atthasdef OR t.typdefault IS NOT NULL OR a.attidentity <> '',
           a.attgenerated <> '' OR a.attidentity = 'a',
           format_type(b.oid, CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END), format_type(b.oid, -1)
    FROM pg_attribute a
    JOIN pg_type t ON t.oid = a.atttypid
    JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
    WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attnum
"""
_KINDS = {
    16: "boolean",
    17: "bytea",
    20: "bigint",
    21: "smallint",
    23: "integer",
    25: "text",
    114: "text",
    700: "real",
    701: "double precision",
    1042: "text",
    1043: "text",
    1082: "date",
    1114: "timestamp",
    1184: "timestamp",
    1700: "numeric",
    2950: "uuid",
    3802: "jsonb",
}
"""Types by number, which never change, and how their values are encoded; others are loaded as text."""
_JSON, _JSONB, _NUMERIC = 114, 3802, 1700
DATE, TIMESTAMP, TIMESTAMPTZ = 1082, 1114, 1184
TIMES = (DATE, TIMESTAMP, TIMESTAMPTZ)
"""Types that the time of an instance can be written as."""
_INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
"""Digits of whole numbers in feeds."""
_WHOLE = {21: ("smallint", 5), 23: ("int", 10), 20: ("bigint", 19)}
"""The same in PostgreSQL, and what they are in feeds."""
_SAME = {
    "boolean": (16,),
    "binary": (17,),
    "date": (DATE,),
    "timestamp": (TIMESTAMPTZ,),
    "timestamp_ntz": (TIMESTAMP,),
    "float": (700,),
    "double": (701,),
}
_NATURAL = {
    "boolean": "boolean",
    "tinyint": "smallint",
    "smallint": "smallint",
    "int": "integer",
    "bigint": "bigint",
    "float": "real",
    "double": "double precision",
    "binary": "bytea",
    "date": "date",
    "timestamp": "timestamp with time zone",
    "timestamp_ntz": "timestamp without time zone",
}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_ARRAY = re.compile(r"array<(.*)>", re.DOTALL)
_NESTED = re.compile(r"(?:struct|map|array)<|variant")
_TEXTS = re.compile(r"string|(?:var)?char\(\d+\)|string collate .*|void")


class TargetColumn(NamedTuple):
    """A column of a target.

    Attributes:
        type: As PostgreSQL writes it.
        base: Number of the type; of a domain, of the type below it. ``modifier``: its length or precision, else -1.
        element: Of an array, the number of the type of its elements; else 0.
        is_filled: Whether it has a value where none is given.
        is_generated: Whether none may be given.
        loaded_as: The type without its domain, and ``bare`` that without a modifier.
    """

    name: str
    type: str
    base: int
    modifier: int
    element: int
    is_required: bool
    is_filled: bool
    is_generated: bool
    loaded_as: str
    bare: str


class Fit(NamedTuple):
    """How a column of a feed travels to its column in the target.

    Attributes:
        type: Of the column in the table that tasks load.
        expression: Spark SQL of what tasks load, with ``{}`` for the name.
        moved: SQL of PostgreSQL that makes the value of the target, with ``{}`` for the name.
    """

    type: str
    encoding: Encoding
    expression: str = "{}"
    moved: str = "{}"


def columns_of(cursor: Cursor, table: int) -> list[TargetColumn]:
    """Returns the columns of the table with that number, in their order."""
    cursor.execute(_COLUMNS, (table,))
    return [TargetColumn(*row) for row in cursor.fetchall()]


def fit_of(spark_type: str, target: TargetColumn) -> Fit | None:
    """How values of a Spark type get there as they are; None: some would not."""
    if found := _ARRAY.fullmatch(spark_type):
        return _array(found[1], target) or _structured(spark_type, target)
    if _NESTED.match(spark_type):
        return _structured(spark_type, target)
    return _scalar(spark_type, target)


def _array(element: str, target: TargetColumn) -> Fit | None:
    if not target.element or _NESTED.match(element):
        return None
    if target.element not in _KINDS:
        if not _TEXTS.fullmatch(element):
            return None
        return Fit("text[]", Encoding("text", 25), moved=f"CAST({{}} AS {target.bare})")
    one = target._replace(base=target.element, element=0)
    fit = _scalar(element, one)
    if fit is None:
        return None
    expression = "{}" if fit.expression == "{}" else f"transform({{}}, x -> {fit.expression.format('x')})"
    return Fit(target.loaded_as, Encoding(fit.encoding.kind, target.element), expression)


def _structured(spark_type: str, target: TargetColumn) -> Fit | None:
    """Structs, maps and arrays of them are JSON."""
    if target.base not in (_JSON, _JSONB):
        return None
    return Fit(target.loaded_as, Encoding(_KINDS[target.base]), "to_json({})")


def _scalar(spark_type: str, target: TargetColumn) -> Fit | None:
    base = target.base
    known = Encoding(_KINDS.get(base, "text"))
    if _TEXTS.fullmatch(spark_type):
        expression = "CAST({} AS string)"
        if known.kind in ("text", "jsonb", "uuid"):
            return Fit(target.loaded_as, known, expression)
        return Fit("text", Encoding("text"), expression, f"CAST({{}} AS {target.bare})")
    if base in _SAME.get(spark_type, ()):
        return Fit(target.loaded_as, known)
    if spark_type == "float" and base == 701:
        return Fit(target.loaded_as, known, "CAST({} AS double)")
    digits, scale = _digits(spark_type)
    if digits is None:
        return None
    if base == _NUMERIC and _holds(target.modifier, digits, scale):
        return Fit(
            target.loaded_as, known, "{}" if spark_type not in _INTEGERS else f"CAST({{}} AS decimal({digits},0))"
        )
    if base in _WHOLE and scale == 0:
        name, most = _WHOLE[base]
        is_whole = spark_type in _INTEGERS
        if digits <= most if is_whole else digits < most:
            return Fit(target.loaded_as, known, "{}" if spark_type == name else f"CAST({{}} AS {name})")
    if spark_type in ("tinyint", "smallint", "int") and base == 701:
        return Fit(target.loaded_as, known, "CAST({} AS double)")
    return None


def _digits(spark_type: str) -> tuple[int | None, int]:
    """How many decimal digits its values have at most, and how many of them after the point."""
    if found := _DECIMAL.fullmatch(spark_type):
        return int(found[1]), int(found[2])
    return _INTEGERS.get(spark_type), 0


def _holds(modifier: int, digits: int, scale: int) -> bool:
    """Whether a numeric column with that modifier has room for so many digits."""
    if modifier < 0:
        return True
    precision, own = (modifier - 4) >> 16, (modifier - 4) & 0x7FF
    if own & 0x400:  # a negative scale, which rounds
        return False
    return own >= scale and precision - own >= digits - scale


def natural_type(spark_type: str) -> str:
    """The type of PostgreSQL that holds all values of a Spark type as they are."""
    if found := _DECIMAL.fullmatch(spark_type):
        return f"numeric({found[1]},{found[2]})"
    if (found := _ARRAY.fullmatch(spark_type)) and not _NESTED.match(found[1]):
        return f"{natural_type(found[1])}[]"
    return "jsonb" if _NESTED.match(spark_type) else _NATURAL.get(spark_type, "text")


def misfits(
    columns: Sequence[tuple[str, str]], target: Sequence[TargetColumn], filled: str | None, table: str
) -> Iterator[str]:
    """Says what does not fit ``table``, and what to do; ``filled`` is the column that the export fills."""
    known = {one.name: one for one in target}
    for name, spark_type in columns:
        if problem := _misfit(name, spark_type, known, filled, f"ALTER TABLE {table}"):
            yield f"{problem}, or leave it out (fields: {{exclude: [{name}]}})"
    if filled and filled not in known:
        column = f"{quoted(filled)} timestamp with time zone"
        yield f"{filled}, which the export fills, is not in the table: ALTER TABLE {table} ADD COLUMN {column}"
    elif filled and (there := known[filled]).base not in TIMES:
        yield f"{filled}, which the export fills, is {there.type}: it has to be a timestamp, with or without a time zone, or a date"
    given = {*dict(columns), filled}
    for one in target:
        if one.is_required and not one.is_filled and one.name not in given:
            yield f"{one.name} {one.type} must not be null, and is not exported: give it a default, or export it"


def _misfit(
    name: str, spark_type: str, known: Mapping[str, TargetColumn], filled: str | None, alter: str
) -> str | None:
    there = known.get(name)
    if name == filled:
        return f"{name} is filled by the export, with the time of the instance: rename it in the feed"
    if there is None:
        other = next((one for one in known if one.lower() == name.lower()), None)
        same = f" (there is {other}: upper and lower case count)" if other else ""
        return f"{name} {spark_type} is not in the table{same}: {alter} ADD COLUMN {quoted(name)} {natural_type(spark_type)}"
    if there.is_generated:
        return f"{name} is generated by the table: rename it in the feed"
    if fit_of(spark_type, there) is None:
        change = f"{alter} ALTER COLUMN {quoted(name)} TYPE {natural_type(spark_type)}"
        return f"{name} is {spark_type} in the feed and {there.type} in the table, which does not hold all values: {change}"
    return None


def created(table: str, columns: Sequence[tuple[str, str]], filled: str | None, key: Sequence[str]) -> str:
    """The statement that creates a table for them."""
    own = [f"{quoted(name)} {natural_type(spark_type)}" for name, spark_type in columns]
    own += [f"{quoted(filled)} timestamp with time zone NOT NULL"] if filled else []
    own += [f"PRIMARY KEY ({', '.join(map(quoted, key))})"] if key else []
    return f"CREATE TABLE {table} ({', '.join(own)})"


def quoted(name: str) -> str:
    """A name in SQL, as it is spelled."""
    return '"' + name.replace('"', '""') + '"'
