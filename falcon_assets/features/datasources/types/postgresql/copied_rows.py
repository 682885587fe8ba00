"""A part of what PostgreSQL has, as a worker of Spark reads it: by COPY, in blocks of whole rows."""

from __future__ import annotations

import re
from binascii import unhexlify
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, json

from falcon_assets.compute.arrow.spark_types import arrow_type
from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import SourceColumn
from falcon_assets.features.datasources.pace import Pace
from falcon_assets.features.datasources.types.postgresql.column_types import is_array
from falcon_assets.features.datasources.types.postgresql.connecting import SESSION, connect, said_of

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection  # noqa: N812 - it is a class
    from psycopg2.extensions import cursor as Cursor  # noqa: N812

_BLOCK_BYTES = 1 << 20
"""The memory of larger ones goes back to the system with each, which takes a tenth of the time of a worker."""
_AHEAD = 2
"""Blocks that are read before they are needed."""
_OF_COLUMN = re.compile(r"CSV column #(\d+)")
_VALUE = re.compile(r"(?:invalid value|The string) '(.{1,60})'")
_SNAPSHOT = re.compile(r"[0-9A-F-]+")


@dataclass(frozen=True)
class CopiedRows:
    """Rows of a statement.

    Attributes:
        dataset: The table, or what else is read, for people.
        statement: SELECT, with arrays as JSON.
        snapshot: That of the transaction which sees the same as all other parts; None: its own.
        rows_per_second: The share of this part; None: as many as it can.
    """

    access: Access
    dataset: str
    statement: str
    columns: Sequence[SourceColumn]
    snapshot: str | None
    rows_per_second: float | None

    def batches(self) -> Iterator[pa.RecordBatch]:
        pace = Pace(self.rows_per_second)
        for block in self._blocks():
            table = self._table(block)
            yield from table.to_batches()
            pace.moved(table.num_rows)

    def _blocks(self) -> Iterator[bytes]:
        """Yields whole rows as CSV; psycopg2 pushes what COPY gives, so another thread reads."""
        most_rows = max(1, int(self.rows_per_second)) if self.rows_per_second else None
        blocks = _Blocks(most_rows)
        Thread(target=self._copy, args=(blocks,), name="copy", daemon=True).start()
        block: bytes | Exception | None = b""
        try:
            while isinstance(block := blocks.ready.get(), bytes):
                yield block
            if block is not None:
                raise block
        finally:
            blocks.cancel()
            while isinstance(block, bytes):  # nobody wants the rest
                block = blocks.ready.get()

    def _copy(self, blocks: _Blocks) -> None:
        try:
            with closing(connect(self.access)) as connection, said_of(self.access), connection.cursor() as cursor:
                connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
                if self.snapshot is not None:
                    assert _SNAPSHOT.fullmatch(self.snapshot)
                    cursor.execute(f"SET TRANSACTION SNAPSHOT '{self.snapshot}'")
                settle(cursor)
                blocks.copying = connection
                cursor.copy_expert(f"COPY ({self.statement}) TO STDOUT (FORMAT csv)", blocks)
                blocks.end()
        except Exception as error:
            blocks.ready.put(error)

    def _table(self, block: bytes) -> pa.Table:
        names = [str(number) for number in range(len(self.columns))]  # those of columns need not differ for Arrow
        arriving = [pa.string() if is_array(one.source_type) else arrow_type(one.arrives_as) for one in self.columns]
        try:
            found = csv.read_csv(
                pa.BufferReader(block),
                csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names),
                csv.ParseOptions(ignore_empty_lines=False),  # a row with one column, null
                csv.ConvertOptions(
                    column_types=dict(zip(names, arriving, strict=True)),
                    null_values=[""],
                    true_values=["t"],
                    false_values=["f"],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
        except pa.ArrowInvalid as error:
            raise self._told(error) from None
        values = [self._values(*one) for one in zip(self.columns, found.columns, strict=True)]
        return pa.table(values, [one.name for one in self.columns])

    def _values(self, column: SourceColumn, found: pa.ChunkedArray) -> pa.ChunkedArray:
        if is_array(column.source_type):
            found = self._arrays(column, found)
        if not column.arrives_as.rstrip(">").endswith("binary"):
            return found
        return pa.chunked_array([_bytes(one) for one in found.chunks], arrow_type(column.arrives_as))

    def _arrays(self, column: SourceColumn, texts: pa.ChunkedArray) -> pa.ChunkedArray:
        """Those of bytes are of texts still."""
        if not len(texts):
            return pa.chunked_array([], arrow_type(column.arrives_as))
        of_texts = re.sub(r"(?<=<)[^<>]+(?=>)", "string", column.arrives_as)
        lines = pc.binary_join_element_wise('{"a":', pc.fill_null(texts.combine_chunks(), "null"), "}\n", "")
        _, _, data = lines.buffers()
        try:
            read = json.read_json(
                pa.BufferReader(data.slice(0, pc.sum(pc.binary_length(lines)).as_py())),
                json.ReadOptions(use_threads=False, block_size=data.size + 1),
                json.ParseOptions(
                    explicit_schema=pa.schema({"a": arrow_type(of_texts)}), unexpected_field_behavior="error"
                ),
            )
            return pc.cast(read.column("a"), arrow_type(column.arrives_as))
        except pa.ArrowInvalid as error:
            if "JSON" in str(error):
                depth = column.arrives_as.count("<")
                raise self._error(
                    column,
                    f"arrays of other than {depth} dimension{'s' * (depth > 1)}, which is what it declares: read it in "
                    f"a query, as to_json({column.name})",
                ) from None
            raise self._told(error, column) from None

    def _told(self, error: pa.ArrowInvalid, column: SourceColumn | None = None) -> DatasourceError:
        said = str(error)
        if column is None:
            found = _OF_COLUMN.search(said)
            if found is None:
                return DatasourceError(f"{self.dataset} of {self.access.name} cannot be read: {said}")
            column = self.columns[int(found[1])]
        value = _VALUE.search(said)
        what = repr(value[1]) if value else "a value"
        return self._error(
            column,
            f"{what}, which no {column.spark_type} of a feed can be: leave the column out (fields), or read a query "
            "that makes something else of it",
        )

    def _error(self, column: SourceColumn, rest: str) -> DatasourceError:
        where = f"{self.dataset} of {self.access.name}"
        return DatasourceError(f"{where}: column {column.name} ({column.source_type}) has {rest}")


def _bytes(texts: pa.Array) -> pa.Array:
    r"""The bytes of ``\x00ff``, also of those in lists."""
    if pa.types.is_list(texts.type):
        return pa.ListArray.from_arrays(texts.offsets, _bytes(texts.values), mask=texts.is_null())
    if not len(texts):
        return pa.array([], pa.binary())
    valid, offsets, digits = pc.binary_replace_slice(texts, 0, 2, b"").buffers()
    ends = pa.Array.from_buffers(pa.int32(), len(texts) + 1, [None, offsets])
    content = pa.py_buffer(unhexlify(digits.slice(0, ends[-1].as_py())))
    halves = pc.divide(ends, pa.scalar(2, pa.int32()))
    return pa.Array.from_buffers(pa.binary(), len(texts), [valid, halves.buffers()[1], content])


class _Blocks:
    """Collects rows as psycopg2 writes them: one each time, as the protocol guarantees.

    Attributes:
        ready: Blocks; at the end None, or why it ended.
        copying: The connection, once rows may come.
    """

    def __init__(self, most_rows: int | None) -> None:
        self.ready: Queue[bytes | Exception | None] = Queue(_AHEAD)
        self.copying: Connection | None = None
        self._is_unwanted = False
        self._most_rows = most_rows
        self._rows: list[bytes] = []
        self._size = 0

    def write(self, row: bytes) -> int:
        self._rows.append(row)
        self._size += len(row)
        if self._size >= _BLOCK_BYTES or len(self._rows) == self._most_rows:
            self._pass_on()
        return len(row)

    def end(self) -> None:
        self._pass_on()
        self.ready.put(None)

    def cancel(self) -> None:
        """Has no more rows come; without effect after the end."""
        self._is_unwanted = True
        if self.copying is not None and not self.copying.closed:
            self.copying.cancel()

    def _pass_on(self) -> None:
        if self._is_unwanted:
            raise DatasourceError("nobody reads it any more")
        if self._rows:
            self.ready.put(b"".join(self._rows))
        self._rows, self._size = [], 0


def settle(cursor: Cursor) -> None:
    """Sets how values are written, in this transaction: a pooler may give each one another session."""
    for name, value in SESSION:
        cursor.execute("SELECT set_config(%s, %s, true)", (name, value))
