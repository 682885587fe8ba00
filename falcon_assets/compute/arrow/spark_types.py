"""What Spark's types are in Arrow."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
from pyspark.errors import PySparkException

from falcon_assets.model.spark_schema import column_definitions

_INSTANT = pa.timestamp("us", "UTC")
_TYPES = {
    **dict.fromkeys(("tinyint", "byte"), pa.int8()),
    **dict.fromkeys(("smallint", "short"), pa.int16()),
    **dict.fromkeys(("int", "integer"), pa.int32()),
    **dict.fromkeys(("bigint", "long"), pa.int64()),
    **dict.fromkeys(("float", "real"), pa.float32()),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    **dict.fromkeys(("timestamp", "timestamp_ltz", "timestamp with local time zone"), _INSTANT),
    **dict.fromkeys(("timestamp_ntz", "timestamp without time zone"), pa.timestamp("us")),
    "string": pa.string(),
    "binary": pa.binary(),
    "void": pa.null(),
}
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\((\d+)(?:,\s*(-?\d+))?\))?")
_TEXT = re.compile(r"(?:var)?char(?:acter)?\(\d+\)")
_NESTED = re.compile(r"(array|map|struct)<(.*)>", re.DOTALL | re.IGNORECASE)


def arrow_type(ddl: str) -> pa.DataType:
    """Returns what a value of that Spark type is in Arrow; raises KeyError for a type that Arrow does not have."""
    name = ddl.strip()
    if nested := _NESTED.fullmatch(name):
        return _nested(nested[1].lower(), nested[2])
    lowered = " ".join(name.lower().split())
    if found := _DECIMAL.fullmatch(lowered):
        return pa.decimal128(int(found[1] or 10), int(found[2] or 0))
    return pa.string() if _TEXT.fullmatch(lowered) else _TYPES[lowered]


def _nested(kind: str, inner: str) -> pa.DataType:
    if kind == "array":
        return pa.list_(arrow_type(inner))
    if kind == "map":
        key, value = _parts(inner)
        return pa.map_(arrow_type(key), arrow_type(value))
    return pa.struct([(name, arrow_type(of)) for name, of in column_definitions(inner)])


def _parts(inner: str) -> Iterator[str]:
    """What stands between commas that are in no brackets."""
    depth, begin = 0, 0
    for at, letter in enumerate(inner):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and not depth:
            yield inner[begin:at]
            begin = at + 1
    yield inner[begin:]


def spark_name(kind: pa.DataType) -> str:
    """Returns the name of what Spark reads such a column as; Arrow's own name where Spark has none."""
    from pyspark.sql.pandas.types import from_arrow_type  # noqa: PLC0415 - it loads Spark's client

    try:
        return str(from_arrow_type(kind, prefer_timestamp_ntz=True).simpleString())
    except PySparkException:
        return str(kind)


def arrow_schema(ddl: str) -> pa.Schema:
    """Returns the columns of a legal schema; raises KeyError for a type that Arrow does not have."""
    return pa.schema([(name, arrow_type(kind)) for name, kind in column_definitions(ddl)])
