"""Types of MySQL and MariaDB, and what their values are in feeds."""

from __future__ import annotations

import re

_SIGNED = {"tinyint": "tinyint", "smallint": "smallint", "mediumint": "int", "int": "int", "bigint": "bigint"}
_UNSIGNED = {
    "tinyint": "smallint",
    "smallint": "int",
    "mediumint": "int",
    "int": "bigint",
    "bigint": "decimal(20,0)",
}
_OTHERS = {
    "float": "float",
    "double": "double",
    "date": "date",
    "datetime": "timestamp_ntz",
    "timestamp": "timestamp",
    "year": "smallint",
    **dict.fromkeys(("bit", "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), "binary"),
    **dict.fromkeys(("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring"), "binary"),
    **dict.fromkeys(("multipolygon", "geometrycollection", "geomcollection", "vector"), "binary"),
}
"""All others are strings, as the server writes them."""
_TYPE = re.compile(r"([a-z]+)(?:\((\d+)(?:,(\d+))?\))?")
_MOST_DIGITS = 38


def spark_type(column_type: str) -> str:
    """Returns the Spark DDL type for a type as ``information_schema.columns.column_type`` has it."""
    found = _TYPE.match(column_type)
    name = found[1] if found else ""
    if name in _SIGNED:
        return (_UNSIGNED if "unsigned" in column_type else _SIGNED)[name]
    if found and name == "decimal":
        digits, scale = int(found[2] or 10), int(found[3] or 0)
        return f"decimal({digits},{scale})" if digits <= _MOST_DIGITS else "string"
    return _OTHERS.get(name, "string")
