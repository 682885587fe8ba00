"""The columns of an Iceberg table in its files: Iceberg knows them by numbers, Spark, which reads files, by names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import pyarrow_to_schema, schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.name_mapping import MappedField, NameMapping
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from falcon_assets.storage.tables.catalog import Column
from falcon_assets.storage.tables.column_types import spark_type
from falcon_assets.storage.tables.iceberg_files import key_fields

_AS_IT_IS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""A name that writers for Iceberg do not escape in Parquet."""


def are_named_alike(table: Table) -> bool:
    """Whether all files name every column as the table does, so that they need not be read."""
    names, numbers = defaultdict[int, set[str]](set), defaultdict[str, set[int]](set)
    for schema in table.schemas().values():
        for number in schema.field_ids:
            name = schema.find_column_name(number) or ""
            names[number].add(name)
            numbers[name.lower()].add(number)
    is_plain = all(
        _AS_IT_IS.fullmatch(schema.find_field(number).name)
        for schema in table.schemas().values()
        for number in schema.field_ids
    )
    is_one = all(len(each) == 1 for each in names.values()) and all(len(each) == 1 for each in numbers.values())
    return is_plain and is_one


def columns_in(table: Table, file: pq.FileMetaData) -> tuple[Column, ...]:
    """Returns the table's columns without its keys, as a file names them; missing ones get names that no file has."""
    there = _fields(table, file.schema.to_arrow_schema())
    keys = {field.field_id for field in key_fields(table)}
    return tuple(
        Column(_name(field, there), _type(field.field_type, there))
        for field in table.schema().fields
        if field.field_id not in keys
    )


def _fields(table: Table, columns: pa.Schema) -> Mapping[int, str]:
    mapping = table.name_mapping() or table.schema().name_mapping
    try:
        found = pyarrow_to_schema(columns, mapping, format_version=table.format_version)
    except ValueError:  # the table knows nothing of one of the names: a foreign file with more in it
        known = {name for field in mapping for name in field.names}
        found = pyarrow_to_schema(
            pa.schema([one for one in columns if one.name in known]), mapping, format_version=table.format_version
        )
    return {number: found.find_field(number).name for number in found.field_ids}


def _name(field: NestedField, there: Mapping[int, str]) -> str:
    return there.get(field.field_id, f"_not_there_{field.field_id}")


def _type(kind: IcebergType, there: Mapping[int, str]) -> str:
    if isinstance(kind, StructType):
        parts = (f"`{_name(field, there)}`:{_type(field.field_type, there)}" for field in kind.fields)
        return f"struct<{','.join(parts)}>"
    if isinstance(kind, ListType):
        return f"array<{_type(kind.element_type, there)}>"
    if isinstance(kind, MapType):
        return f"map<{_type(kind.key_type, there)},{_type(kind.value_type, there)}>"
    return spark_type(schema_to_pyarrow(Schema(NestedField(1, "one", kind, required=False))).field(0).type)


def mapping_for(table: Table, files: Iterable[pa.Schema]) -> NameMapping:
    """Returns the table's mapping of names in files without numbers, extended by their other cases."""
    mapping = table.name_mapping() or table.schema().name_mapping
    for columns in files:
        mapping = NameMapping(_with([*mapping], columns))
    return mapping


def _with(fields: list[MappedField], columns: Iterable[Any]) -> list[MappedField]:
    by_name: dict[str, pa.Field] = {one.name.lower(): one for one in columns}
    known = {name for field in fields for name in field.names}
    found = []
    for field in fields:
        own = next((by_name[name.lower()] for name in field.names if name.lower() in by_name), None)
        names = [*field.names, own.name] if own is not None and own.name not in known else field.names
        inner = field.fields if own is None else _with(field.fields, _children(own.type))
        found.append(MappedField(field_id=field.field_id, names=names, fields=inner))
    return found


def _children(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_struct(kind):
        return [*kind]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [pa.field("element", kind.value_type)]
    if pa.types.is_map(kind):
        return [pa.field("key", kind.key_type), pa.field("value", kind.item_type)]
    return []
