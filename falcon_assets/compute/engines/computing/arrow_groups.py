"""What a task of Spark does for each instance of a batch; it travels with the function, so it needs PyArrow alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

INSTANCE, INPUT, ROWS = "falcon_instance", "falcon_input", "falcon_rows_"
"""The number of the instance, that of the input, and the beginning of the column with the rows of an input."""
NO_INPUT = -1
"""The number of an input, in a row that each instance has, so that one without data is computed, too."""


def calling(
    function: Callable[[Mapping[str, pa.Table], Any], Any],
    instances: Sequence[Any],
    inputs: Sequence[str],
    schema: pa.Schema,
    where: str,
) -> Callable[[tuple[Any, ...], pa.Table], pa.Table]:
    """Returns what gets the key of a group and its rows, and returns those of its output behind the key."""

    def rows_of(table: pa.Table, number: int) -> pa.Table:
        rows = table.column(f"{ROWS}{number}").filter(pc.equal(table.column(INPUT), number))
        return pa.Table.from_struct_array(rows.combine_chunks())

    def data_of(returned: Any) -> pa.Table:
        if type(returned).__module__.partition(".")[0] == "pandas":
            return pa.Table.from_pandas(returned, preserve_index=False)
        if isinstance(returned, pa.RecordBatch):
            return pa.Table.from_batches([returned])
        if not hasattr(returned, "__arrow_c_stream__"):
            found = "nothing" if returned is None else f"a value of type {type(returned).__name__}"
            raise TypeError(f"{where} returned {found}: return a table")
        return pa.RecordBatchReader.from_stream(returned).read_all()

    def fitted(rows: pa.Table) -> list[pa.ChunkedArray]:
        own = {name.lower(): number for number, name in enumerate(rows.column_names)}
        wrong = [f"{name} is missing" for name in schema.names if name.lower() not in own]
        wrong += [
            f"{name} is not declared" for name in rows.column_names if name.lower() not in map(str.lower, schema.names)
        ]
        if wrong or len(own) < len(rows.column_names):
            said = "; ".join(wrong) or f"two have one name: {', '.join(rows.column_names)}"
            raise ValueError(f"{where}: the columns are not those of the feed: {said}")
        return [_cast(rows.column(own[field.name.lower()]), field, where) for field in schema]

    def call(key: tuple[Any, ...], table: pa.Table) -> pa.Table:
        number = key[0].as_py()
        given = {name: rows_of(table, at) for at, name in enumerate(inputs)}
        columns = fitted(data_of(function(given, instances[number])))
        numbers = pa.repeat(pa.scalar(number, pa.int32()), len(columns[0]))
        return pa.table([numbers, *columns], [INSTANCE, *schema.names])

    return call


def _cast(column: pa.ChunkedArray, field: pa.Field, where: str) -> pa.ChunkedArray:
    try:
        return pc.cast(column, field.type)
    except pa.ArrowException as error:
        raise ValueError(
            f"{where}: column {field.name!r} is {column.type} and does not fit into {field.type}: {error}"
        ) from error
