"""The columns of all files of an instance together: one that only some have is kept, types are widened or refused."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from falcon_assets.errors import StorageError

_SIGNED = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_UNSIGNED = (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
_FLOATS = (pa.float16(), pa.float32(), pa.float64())
_TEXTS, _BINARIES = (pa.string(), pa.large_string()), (pa.binary(), pa.large_binary())
_MOST_DIGITS = 38
_EXACT = {pa.float32(): _SIGNED[:2], pa.float64(): _SIGNED[:3]}
"""The integers that a floating-point type holds without rounding."""


def common_schema(schemas: Iterable[tuple[str, pa.Schema]]) -> pa.Schema:
    """The columns of files (name, columns), in the order in which they come first, named as there.

    Names are compared as Spark compares them, whatever their case. Raises StorageError where a column has types that
    no type holds without loss, or two columns of a file have one name.
    """
    found: dict[str, tuple[pa.Field, str]] = {}
    for file, schema in schemas:
        own = {field.name.lower(): field for field in schema}
        if len(own) < len(schema):
            twice = sorted(name for name in own if sum(one.name.lower() == name for one in schema) > 1)
            raise StorageError(f"{file} has several columns of the name {twice[0]!r}, whatever their case")
        for name, field in own.items():
            known, first = found.get(name, (field, file))
            kind = wider(known.type, field.type)
            if kind is None:
                raise StorageError(
                    f"column {known.name!r} is {known.type} in {first} and {field.type} in {file}: no type holds both "
                    "without loss"
                )
            found[name] = (pa.field(known.name, kind, metadata=known.metadata), first)
    return pa.schema([field for field, _ in found.values()])


def wider(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type that holds the values of both without loss; None: there is none."""
    one, other = _stored(one), _stored(other)
    if one.equals(other) or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    for ladder in (_SIGNED, _UNSIGNED, _FLOATS, _TEXTS, _BINARIES):
        if one in ladder and other in ladder:
            return ladder[max(ladder.index(one), ladder.index(other))]
    number = next((number for number, exact in _EXACT.items() if {one, other} <= {number, *exact}), None)
    return number or _wider_with_parameters(one, other)


def _wider_with_parameters(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if pa.types.is_decimal(one) and pa.types.is_decimal(other):
        scale = max(one.scale, other.scale)
        digits = max(one.precision - one.scale, other.precision - other.scale) + scale
        return pa.decimal128(digits, scale) if digits <= _MOST_DIGITS else None
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other) and (one.tz is None) == (other.tz is None):
        units = ("s", "ms", "us", "ns")
        return pa.timestamp(units[max(units.index(one.unit), units.index(other.unit))], one.tz and "UTC")
    return _wider_nested(one, other)


def _wider_nested(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        fields = {field.name: field for field in one}
        for field in other:
            known = fields.get(field.name, field)
            kind = wider(known.type, field.type)
            if kind is None:
                return None
            fields[field.name] = pa.field(known.name, kind, metadata=known.metadata)
        return pa.struct(list(fields.values()))
    if pa.types.is_list(one) and pa.types.is_list(other):
        item = wider(one.value_type, other.value_type)
        return None if item is None else pa.list_(one.value_field.with_type(item).with_nullable(True))
    return None  # of maps, too: Arrow loses fields when it casts what is in them


def _stored(kind: pa.DataType) -> pa.DataType:
    """Dictionaries and views are another layout of the same values."""
    if pa.types.is_dictionary(kind):
        return _stored(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary_view(kind) else kind


def as_schema(table: pa.Table, schema: pa.Schema, file: str) -> pa.Table:
    """With these columns; raises StorageError where a value does not fit."""
    own = {name.lower(): number for number, name in enumerate(table.column_names)}
    columns: list[pa.ChunkedArray] = []
    for field in schema:
        number = own.get(field.name.lower())
        if number is None:
            columns.append(pa.chunked_array([pa.nulls(len(table), field.type)]))
            continue
        column = table.column(number)
        try:
            columns.append(pc.cast(column, field.type))
        except pa.ArrowException as error:
            raise StorageError(f"column {field.name!r} of {file} does not fit into {field.type}: {error}") from None
    return pa.Table.from_arrays(columns, schema=schema)


def with_instants(file: pq.ParquetFile) -> pa.Schema:
    """The columns, in which the timestamps of Spark's old kind (INT96) are the instants that they stand for."""
    leaves = (file.schema.column(number) for number in range(len(file.schema)))
    old = {one.path.split(".")[0] for one in leaves if one.physical_type == "INT96"}
    schema = file.schema_arrow
    return pa.schema([one.with_type(_instants(one.type)) if one.name in old else one for one in schema])


def _instants(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp(kind.unit, "UTC")
    if pa.types.is_struct(kind):
        return pa.struct([one.with_type(_instants(one.type)) for one in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_instants(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_instants(kind.key_type), _instants(kind.item_type))
    return kind
