"""What columns are in Arrow when they arrive from a datasource."""

from __future__ import annotations

import re

import pyarrow as pa

_TYPES = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "string": pa.string(),
    "binary": pa.binary(),
}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


def arrow_type(ddl: str) -> pa.DataType:
    """Returns what a column that arrives as that Spark type is in Arrow; those of a struct are simple."""
    if ddl.startswith("array<"):
        return pa.list_(arrow_type(ddl[len("array<") : -1]))
    if ddl.startswith("struct<"):
        fields = (one.split(": ") for one in ddl[len("struct<") : -1].split(", "))
        return pa.struct([(name, arrow_type(kind)) for name, kind in fields])
    if found := _DECIMAL.fullmatch(ddl):
        return pa.decimal128(int(found[1]), int(found[2]))
    return _TYPES[ddl]
