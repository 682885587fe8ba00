"""Types of PostgreSQL, and what their values are in feeds."""

from __future__ import annotations

import re

from falcon_assets.features.datasources.datasource_type import SourceColumn

SPARK_TYPES = {
    "smallint": "smallint",
    "integer": "int",
    "bigint": "bigint",
    "oid": "bigint",
    "real": "float",
    "double precision": "double",
    "boolean": "boolean",
    "date": "date",
    "timestamp with time zone": "timestamp",
    "timestamp without time zone": "timestamp_ntz",
    "bytea": "binary",
}
"""All others are strings, as PostgreSQL writes them."""
_NUMERIC = re.compile(r"numeric\((\d+),(-?\d+)\)")
_PRECISION = re.compile(r"(timestamp)\(\d\)")
_MOST_DIGITS = 38
_ARRAY = "[]"


def spark_type(source_type: str, dimensions: int = 1) -> str:
    """Returns the Spark DDL type for a type as ``format_type`` writes it; that of a domain is the one below it.

    ``dimensions`` are those of an array, which ``format_type`` does not tell.
    """
    if source_type.endswith(_ARRAY):
        return _nested(spark_type(source_type.removesuffix(_ARRAY)), dimensions)
    if found := _NUMERIC.fullmatch(source_type):
        digits, scale = int(found[1]), int(found[2])
        digits, scale = (
            max(digits, scale, digits - scale),
            max(scale, 0),
        )  # numeric(2,5) is 0.000nn, numeric(2,-3) nn000
        return f"decimal({digits},{scale})" if digits <= _MOST_DIGITS else "string"
    return SPARK_TYPES.get(_PRECISION.sub(r"\1", source_type), "string")


def source_column(name: str, source_type: str, dimensions: int = 1) -> SourceColumn:
    """Returns how a column travels: as it is in the feed."""
    kind = spark_type(source_type, dimensions)
    return SourceColumn(name, source_type, kind, kind)


def is_array(source_type: str) -> bool:
    """Whether values are read as JSON, in which null elements and nested arrays differ from texts that look alike."""
    return source_type.endswith(_ARRAY)


def _nested(element: str, dimensions: int) -> str:
    return "array<" * dimensions + element + ">" * dimensions
