"""The types of columns: Arrow's, in which Python sees files and Iceberg, as Spark and Hive write them."""

from __future__ import annotations

import re

import pyarrow as pa

from falcon_assets.storage.tables.catalog import Column

TEXTS = re.compile(r"(var)?char\((\d+)\)")
"""Texts of limited length; its second group is the limit."""
_PLAIN = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
}


def columns_of(schema: pa.Schema) -> tuple[Column, ...]:
    return tuple(Column(field.name, spark_type(field.type)) for field in schema)


def spark_type(arrow: pa.DataType) -> str:
    """Returns an Arrow type as Spark's DDL has it; raises ValueError if Spark has none."""
    if arrow in _PLAIN:
        return _PLAIN[arrow]
    if pa.types.is_timestamp(arrow):
        # Spark's own INT96, which has no zone, comes in nanoseconds and means a moment.
        return "timestamp" if arrow.tz or arrow.unit == "ns" else "timestamp_ntz"
    if pa.types.is_decimal(arrow):
        return f"decimal({arrow.precision},{arrow.scale})"
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        return f"array<{spark_type(arrow.value_type)}>"
    if pa.types.is_map(arrow):
        return f"map<{spark_type(arrow.key_type)},{spark_type(arrow.item_type)}>"
    if pa.types.is_struct(arrow):
        return f"struct<{','.join(f'{field.name}:{spark_type(field.type)}' for field in arrow)}>"
    raise ValueError(f"Spark has no type for {arrow}")


def hive_type(spark: str) -> str:
    """Returns Spark's type as Hive has it, which has one kind of timestamp."""
    return spark.replace("timestamp_ntz", "timestamp")


def as_read(spark: str) -> str:
    """Returns the type in which Spark reads files, which has no texts of limited length."""
    return TEXTS.sub("string", spark)


def plain_type(spark: str) -> str:
    """Returns the type without what files do not record: limits of texts, the meaning of a Hive timestamp."""
    return as_read(spark.replace(" ", "").lower()).replace("timestamp_ntz", "timestamp")


def nullable(field: pa.Field) -> pa.Field:
    return field.with_type(_nullable(field.type)).with_nullable(True)


def _nullable(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([nullable(one) for one in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(nullable(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_field.with_type(_nullable(kind.key_type)), nullable(kind.item_field))
    return kind
