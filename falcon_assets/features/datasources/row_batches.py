"""Rows as drivers of databases give them, in Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from falcon_assets.compute.arrow.spark_types import arrow_type
from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.datasource_type import SourceColumn
from falcon_assets.features.datasources.pace import Pace

_ROWS, _BYTES = 1_000, 4 << 20
"""As many rows are fetched at once as have about so many bytes, by those before; the first alone."""
_SHOWN = 60
_UNFIT = (pa.ArrowException, ValueError, TypeError, OverflowError)


def row_batches(
    cursor: Any, columns: Sequence[SourceColumn], where: str, rows_per_second: float | None
) -> Iterator[pa.RecordBatch]:
    """Yields what the cursor has, at that rate; ``where`` names the source, for people.

    Raises:
        DatasourceError: a value does not fit the type of its column.
    """
    pace = Pace(rows_per_second)
    most = min(_ROWS, max(1, int(rows_per_second))) if rows_per_second else _ROWS
    size = 1
    while rows := cursor.fetchmany(size):
        arrays = [_array(one, values, where) for one, values in zip(columns, zip(*rows, strict=True), strict=True)]
        batch = pa.RecordBatch.from_arrays(arrays, [one.name for one in columns])
        size = max(1, min(most, _BYTES * len(rows) // max(1, batch.nbytes)))
        yield batch
        pace.moved(len(rows))


def _array(column: SourceColumn, values: Sequence[Any], where: str) -> pa.Array:
    kind = arrow_type(column.arrives_as)
    try:
        if pa.types.is_integer(kind) and any(isinstance(one, float) for one in values):
            raise TypeError  # Arrow would cut it
        return pa.array(values, kind)
    except _UNFIT:
        raise _misfit(column, next(filter(lambda one: not _fits(one, kind), values), None), where) from None


def _fits(value: Any, kind: pa.DataType) -> bool:
    try:
        pa.array([value], kind)
    except _UNFIT:
        return False
    return not (pa.types.is_integer(kind) and isinstance(value, float))


def _misfit(column: SourceColumn, value: Any, where: str) -> DatasourceError:
    rest = "leave the column out (fields), or read a query that makes something else of it"
    what = f"has {str(value)[:_SHOWN]!r}, which no {column.spark_type} of a feed can be"
    return DatasourceError(f"{where}: column {column.name} ({column.source_type}) {what}: {rest}")
