"""Types of PostgreSQL, and what their values are in feeds."""

from __future__ import annotations

import re

_SPARK_TYPES = {
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
_NUMERIC = re.compile(r"numeric\((\d+),(\d+)\)")
_PRECISION = re.compile(r"(timestamp)\(\d\)")
_MOST_DIGITS = 38


def spark_type(source_type: str) -> str:
    """Returns the Spark DDL type for a type as ``format_type`` writes it; that of a domain is the one below it."""
    if source_type.endswith("[]"):
        return f"array<{spark_type(source_type.removesuffix('[]'))}>"
    if (found := _NUMERIC.fullmatch(source_type)) and int(found[2]) <= int(found[1]) <= _MOST_DIGITS:
        return f"decimal({found[1]},{found[2]})"
    return _SPARK_TYPES.get(_PRECISION.sub(r"\1", source_type), "string")
