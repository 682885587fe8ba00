"""Tables beside a target that the tasks of a delivery load: one for each attempt at a part, gone after the delivery.

Their names carry the key of the delivery, whose lock its driver holds in its session: where the lock is free, the
driver is dead, and what it left is dropped by the next delivery.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

import psycopg2
from psycopg2.extensions import cursor as Cursor  # noqa: N812 - it is a class

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.pace import paced
from falcon_assets.features.datasources.types.postgresql.binary_rows import (
    HEADER,
    TRAILER,
    Encoding,
    UnfitValueError,
    encoded,
)
from falcon_assets.features.datasources.types.postgresql.connecting import connect, sentence
from falcon_assets.features.datasources.types.postgresql.target_columns import quoted

if TYPE_CHECKING:
    import pyarrow as pa

_PREFIX = "falcon_staging_"
_NAME = re.compile(rf"{_PREFIX}([0-9a-f]{{15}})_\d+_\d+")
_LEFT = rf"""
    SELECT c.relname FROM pg_class c
    WHERE c.relnamespace = %s::regnamespace AND c.relkind = 'r' AND c.relname ~ '^{_NAME.pattern}$'
      AND pg_has_role(c.relowner, 'USAGE')
"""
_IN_COLUMN = re.compile(r"COPY \w+, line \d+, column ([^:\n]+)")
_CHUNK = 1 << 20


class StagedColumn(NamedTuple):
    """A column of a staging table; ``type`` is of PostgreSQL."""

    name: str
    type: str
    encoding: Encoding


@dataclass(frozen=True)
class StagingPart:
    """Loads parts of a delivery, in tasks of Spark.

    Attributes:
        schema: Where the tables are made.
        key: Of the delivery.
        rows_per_second: The share of a part; None: any number.
    """

    access: Access
    schema: str
    key: str
    columns: Sequence[StagedColumn]
    rows_per_second: float | None

    def table(self, number: int, attempt: int) -> str:
        """The table of one attempt at a part, in SQL."""
        return f"{quoted(self.schema)}.{_PREFIX}{self.key}_{number}_{attempt}"

    def load(self, number: int, attempt: int, batches: Iterator[pa.RecordBatch]) -> int:
        """Returns how many rows part ``number`` has; raises DatasourceError, which names the column where it can."""
        first = next(batches, None)
        if first is None:
            return 0
        table = self.table(number, attempt)
        rows = _Rows(paced(chain((first,), batches), self.rows_per_second), [one.encoding for one in self.columns])
        columns = ", ".join(f"{quoted(one.name)} {one.type}" for one in self.columns)
        with closing(connect(self.access)) as connection, connection.cursor() as cursor:
            try:
                cursor.execute(f"CREATE UNLOGGED TABLE {table} ({columns})")
                cursor.copy_expert(f"COPY {table} FROM STDIN (FORMAT binary)", rows, size=_CHUNK)  # type: ignore[arg-type]
                connection.commit()
            except psycopg2.Error as error:
                if rows.problem is not None and not isinstance(rows.problem, UnfitValueError):
                    raise rows.problem from None
                said = str(rows.problem) if rows.problem else _named(error)
                raise DatasourceError(f"datasource {self.access.name!r}: {said}") from None
        return rows.number


class _Rows:
    """Encoded rows as a file; ``number`` of those that were read, and the ``problem`` of those that cannot be."""

    def __init__(self, batches: Iterator[pa.RecordBatch], encodings: Sequence[Encoding]) -> None:
        self.number = 0
        self.problem: Exception | None = None
        self._chunks = self._encoded(batches, encodings)
        self._left = memoryview(b"")

    def read(self, size: int = -1, /) -> bytes:
        """Returns some of what is left; a size has to be given."""
        while not self._left:
            try:
                chunk = next(self._chunks, b"")
            except Exception as error:  # psycopg2 would say only that reading failed
                self.problem = error
                raise
            if not chunk:
                return b""
            self._left = memoryview(chunk)
        read, self._left = self._left[:size], self._left[size:]
        return bytes(read)

    def _encoded(self, batches: Iterator[pa.RecordBatch], encodings: Sequence[Encoding]) -> Iterator[bytes]:
        yield HEADER
        for batch in batches:
            self.number += batch.num_rows
            yield from encoded(batch, encodings)
        yield TRAILER


def _named(error: psycopg2.Error) -> str:
    """The error as a sentence that names the column."""
    column = _IN_COLUMN.search(error.diag.context or "")
    return f"column {column[1]}: {sentence(error)}" if column else sentence(error)


def new_key(cursor: Cursor) -> str:
    """Returns the key of a delivery, whose lock the session holds until it ends."""
    key = uuid4().hex[:15]
    cursor.execute("SELECT pg_advisory_lock(%s)", (int(key, 16),))
    return key


def drop_staging(cursor: Cursor, schema: str, own: str = "") -> None:
    """Drops the tables of deliveries whose driver is dead, and of that with the key ``own``."""
    cursor.execute(_LEFT, (quoted(schema),))
    for (name,) in cursor.fetchall():
        found = _NAME.fullmatch(name)
        assert found is not None
        if found[1] == own:
            cursor.execute(f"DROP TABLE IF EXISTS {quoted(schema)}.{name}")
            continue
        cursor.execute("SELECT pg_try_advisory_lock(%s)", (lock := int(found[1], 16),))
        if cursor.fetchone() == (True,):
            cursor.execute(f"DROP TABLE IF EXISTS {quoted(schema)}.{name}")
            cursor.execute("SELECT pg_advisory_unlock(%s)", (lock,))
