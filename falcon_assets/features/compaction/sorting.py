"""Sorts more rows than fit into memory: sorted runs in files, merged block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from falcon_assets.errors import StorageError

_BLOCK_BYTES = 1 << 19
_RUNS_AT_ONCE = 64
"""Runs that are merged together; one block of each is in memory."""
_SLICE_ROWS = 1 << 16


@dataclass
class ExternalSort:
    """Takes rows in any order and gives them back sorted, as Spark sorts: null first, NaN last.

    Attributes:
        keys: Columns, the first counts most; none: the order stays.
        folder: Where runs are kept, if the rows exceed ``budget`` bytes.
    """

    keys: Sequence[str]
    folder: Path
    budget: int
    _pending: list[pa.Table] = field(default_factory=list, init=False)
    _bytes: int = field(default=0, init=False)
    _runs: list[_Run] = field(default_factory=list, init=False)
    _written: int = field(default=0, init=False)

    def add(self, table: pa.Table) -> None:
        self._pending.append(table)
        self._bytes += table.nbytes
        if self.keys and self._bytes >= self.budget:
            self._runs.append(self._run(self._taken()))

    def rows(self) -> Iterator[pa.Table]:
        """In order; to be called once, when all are added."""
        if not self._runs:
            yield from self._taken()
            return
        if self._pending:
            self._runs.append(self._run(self._taken()))
        while len(self._runs) > _RUNS_AT_ONCE:
            first, self._runs = self._runs[:_RUNS_AT_ONCE], self._runs[_RUNS_AT_ONCE:]
            self._runs.append(self._run(self._merged(first)))
        yield from self._merged(self._runs)

    def _taken(self) -> Iterator[pa.Table]:
        """The pending rows, sorted."""
        if not self._pending:
            return
        table, self._pending, self._bytes = pa.concat_tables(self._pending), [], 0
        if not self.keys:
            yield table
            return
        order = sort_order(table.select(self.keys))
        for start in range(0, len(order), _SLICE_ROWS):
            yield table.take(pa.array(order[start : start + _SLICE_ROWS]))

    def _run(self, tables: Iterator[pa.Table]) -> _Run:
        run = _Run(self.folder / f"{self._written}.arrow", self.keys)
        self._written += 1
        run.write(tables)
        return run

    def _merged(self, runs: Sequence[_Run]) -> Iterator[pa.Table]:
        """Loads blocks in the order of their first rows: what sorts before the next block's first row is complete."""
        first = pa.concat_tables([run.first for run in runs])
        which = [(run, number) for run in runs for number in range(run.first.num_rows)]
        order = sort_order(first)
        at_once = max(self.budget // (2 * _BLOCK_BYTES), len(runs))
        rest: list[pa.Table] = []
        for start in range(0, len(order), at_once):
            chosen = order[start : start + at_once]
            blocks = [which[number][0].block(which[number][1]) for number in chosen]
            pool = pa.concat_tables([*rest, *blocks])
            stop = start + at_once
            bound = first.slice(order[stop], 1) if stop < len(order) else first.slice(0, 0)
            sorted_now = sort_order(pa.concat_tables([pool.select(self.keys), bound]))
            whole = int(np.flatnonzero(sorted_now == len(pool))[0]) if bound.num_rows else len(pool)
            for slice_start in range(0, whole, _SLICE_ROWS):
                yield pool.take(pa.array(sorted_now[slice_start : min(slice_start + _SLICE_ROWS, whole)]))
            kept = sorted_now[whole:]
            rest = [pool.take(pa.array(kept[kept != len(pool)]))]
        for run in runs:
            run.remove()


@dataclass
class _Run:
    path: Path
    keys: Sequence[str]
    first: pa.Table = field(init=False)
    """The keys of the first row of each block."""

    def write(self, tables: Iterator[pa.Table]) -> None:
        firsts: list[pa.Table] = []
        writer = None
        try:
            for table in tables:
                writer = writer or pa.ipc.new_file(
                    str(self.path), table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")
                )
                rows = max(1, len(table) * _BLOCK_BYTES // max(table.nbytes, 1))
                whole = table.combine_chunks()
                for start in range(0, len(whole), rows):
                    block = whole.slice(start, rows)
                    writer.write_table(block, max_chunksize=rows)
                    firsts.append(block.select(self.keys).slice(0, 1).combine_chunks())
        finally:
            if writer:
                writer.close()
        self.first = pa.concat_tables(firsts).combine_chunks()

    def block(self, number: int) -> pa.Table:
        with pa.OSFile(str(self.path)) as file:
            return pa.Table.from_batches([pa.ipc.open_file(file).get_batch(number)])

    def remove(self) -> None:
        self.path.unlink()


def sort_order(keys: pa.Table) -> NDArray[np.uint64]:
    """The indexes of rows in order, equal ones as they are; raises StorageError where a column has no order."""
    columns: list[pa.ChunkedArray] = []
    for name in keys.column_names:
        column = keys[name]
        if pa.types.is_nested(column.type):
            raise StorageError(f"column {name!r} is {column.type}, which has no order: sort by other columns")
        if column.null_count:
            columns.append(pc.is_valid(column))
        if pa.types.is_floating(column.type) and pc.any(is_nan := pc.is_nan(column)).as_py():
            columns.append(is_nan)  # which Arrow sorts beside null
        if not pa.types.is_null(column.type):
            columns.append(column)
    table = pa.table(columns, [str(number) for number in range(len(columns))])
    found: NDArray[np.uint64] = pc.sort_indices(table, sort_keys=[(one, "ascending") for one in table.column_names])
    return np.asarray(found)
