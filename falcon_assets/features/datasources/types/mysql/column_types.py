"""Types of MySQL and MariaDB, and what their values are in feeds."""

from __future__ import annotations

import re
from typing import Any

from falcon_assets.features.datasources.datasource_type import SourceColumn

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
AS_TEXT = frozenset({"time"})
"""Types whose values are read as the texts that the server makes of them."""
_BINARY = 63
"""The character set of bytes."""
_UNSIGNED_FLAG = 32
_WIRE = {
    **{1: "tinyint", 2: "smallint", 3: "int", 4: "float", 5: "double", 7: "timestamp", 8: "bigint", 9: "mediumint"},
    **{10: "date", 11: "time", 12: "datetime", 13: "year", 14: "date", 16: "bit", 245: "json", 255: "geometry"},
}
"""Numbers of types in results -> their names; source: the protocol of MySQL."""
_DECIMALS, _OF_TEXT = (0, 246), "text"


def type_of(field: Any) -> str:
    """Returns the type of a column of a result, as those of tables are written; lengths are those of decimals only."""
    is_unsigned = " unsigned" if field.flags & _UNSIGNED_FLAG else ""
    if field.type_code in _DECIMALS:
        digits = field.length - (not is_unsigned) - (field.scale > 0)  # without sign and point
        return f"decimal({digits},{field.scale}){is_unsigned}"
    if field.type_code in _WIRE:
        return f"{_WIRE[field.type_code]}{is_unsigned}"
    return "blob" if field.charsetnr == _BINARY else _OF_TEXT


def source_column(name: str, column_type: str) -> SourceColumn:
    """Returns how a column travels: as it is in the feed."""
    kind = spark_type(column_type)
    return SourceColumn(name, column_type, kind, kind)


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
