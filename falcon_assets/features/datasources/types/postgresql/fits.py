"""Which columns of feeds fit columns of PostgreSQL, so that every value arrives as it is."""

from __future__ import annotations

import re
from typing import NamedTuple

from falcon_assets.features.datasources.types.postgresql.binary_rows import Encoding
from falcon_assets.features.datasources.types.postgresql.target_columns import TargetColumn

DATE, TIMESTAMP, TIMESTAMPTZ = 1082, 1114, 1184
TIMES = {DATE: "date", TIMESTAMP: "UTC", TIMESTAMPTZ: None}
"""Types that the time of an instance can be written as, as :class:`.TargetDialect` has them."""
_JSON, _JSONB, _NUMERIC, _DOUBLE, _TEXT = 114, 3802, 1700, 701, 25
_ENCODINGS = {
    16: "boolean",
    17: "bytea",
    20: "bigint",
    21: "smallint",
    23: "integer",
    _TEXT: "text",
    _JSON: "text",
    700: "real",
    _DOUBLE: "double precision",
    1042: "text",
    1043: "text",
    DATE: "date",
    TIMESTAMP: "timestamp",
    TIMESTAMPTZ: "timestamp",
    _NUMERIC: "numeric",
    2950: "uuid",
    _JSONB: "jsonb",
}
"""Types by number, which never change, and how their values are encoded; others are loaded as text."""
_OF_TEXT = ("text", "jsonb", "uuid")
_SAME = {
    "boolean": 16,
    "binary": 17,
    "date": DATE,
    "timestamp": TIMESTAMPTZ,
    "timestamp_ntz": TIMESTAMP,
    "float": 700,
    "double": _DOUBLE,
}
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
"""Of whole numbers in feeds."""
_WHOLE = {21: ("smallint", 5), 23: ("int", 10), 20: ("bigint", 19)}
"""Those of PostgreSQL in feeds, and their digits."""
_IN_DOUBLES = ("float", "tinyint", "smallint", "int")
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
_STRING = re.compile(r"string|(?:var)?char\(\d+\)|string collate .*|void")


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


def fit_of(spark_type: str, target: TargetColumn) -> Fit | None:
    """How values of a Spark type get there as they are; None: some would not."""
    if found := _ARRAY.fullmatch(spark_type):
        return _array(found[1], target) or _structured(target)
    return _structured(target) if _NESTED.match(spark_type) else _scalar(spark_type, target)


def natural_type(spark_type: str) -> str:
    """The type of PostgreSQL that holds all values of a Spark type as they are."""
    if found := _DECIMAL.fullmatch(spark_type):
        return f"numeric({found[1]},{found[2]})"
    if (found := _ARRAY.fullmatch(spark_type)) and not _NESTED.match(found[1]):
        return f"{natural_type(found[1])}[]"
    return "jsonb" if _NESTED.match(spark_type) else _NATURAL.get(spark_type, "text")


def _array(element: str, target: TargetColumn) -> Fit | None:
    if not target.element or _NESTED.match(element):
        return None
    if target.element not in _ENCODINGS:
        is_text = _STRING.fullmatch(element)
        return Fit("text[]", Encoding("text", _TEXT), moved=f"CAST({{}} AS {target.bare})") if is_text else None
    fit = _scalar(element, target._replace(base=target.element, element=0))
    if fit is None:
        return None
    expression = "{}" if fit.expression == "{}" else f"transform({{}}, x -> {fit.expression.format('x')})"
    moved = "{}" if fit.moved == "{}" else f"CAST({{}} AS {target.bare})"
    of_text = moved != "{}"
    element_type = _TEXT if of_text else target.element
    return Fit("text[]" if of_text else target.loaded_as, Encoding(fit.encoding.kind, element_type), expression, moved)


def _structured(target: TargetColumn) -> Fit | None:
    """Structs, maps and arrays of them are JSON."""
    if target.base not in (_JSON, _JSONB):
        return None
    return Fit(target.loaded_as, Encoding(_ENCODINGS[target.base]), "to_json({})")


def _scalar(spark_type: str, target: TargetColumn) -> Fit | None:
    encoding = Encoding(_ENCODINGS.get(target.base, "text"))
    if _STRING.fullmatch(spark_type):
        if encoding.kind in _OF_TEXT and target.base in _ENCODINGS:
            return Fit(target.loaded_as, encoding, "CAST({} AS string)")
        return Fit("text", Encoding("text"), "CAST({} AS string)", f"CAST({{}} AS {target.bare})")
    travels_as = _travels_as(spark_type, target)
    if travels_as is None:
        return None
    return Fit(target.loaded_as, encoding, "{}" if travels_as == spark_type else f"CAST({{}} AS {travels_as})")


def _travels_as(spark_type: str, target: TargetColumn) -> str | None:
    """The Spark type as which all values fit; None: some do not."""
    if target.base == _SAME.get(spark_type):
        return spark_type
    if target.base == _DOUBLE and spark_type in _IN_DOUBLES:
        return "double"
    decimal = _DECIMAL.fullmatch(spark_type)
    digits, scale = (int(decimal[1]), int(decimal[2])) if decimal else (_DIGITS.get(spark_type, 0), 0)
    if not digits:
        return None
    if target.base == _NUMERIC and _holds(target.modifier, digits, scale):
        return spark_type if decimal else f"decimal({digits},0)"
    name, most = _WHOLE.get(target.base, ("", 0))
    # All numbers of so many digits fit only where they are fewer than the most.
    return name if scale == 0 and (digits < most if decimal else digits <= most) else None


def _holds(modifier: int, digits: int, scale: int) -> bool:
    """Whether a numeric column with that modifier has room for so many digits."""
    if modifier < 0:
        return True
    precision, own = (modifier - 4) >> 16, (modifier - 4) & 0x7FF
    is_rounded = bool(own & 0x400)  # a negative scale
    return not is_rounded and own >= scale and precision - own >= digits - scale
