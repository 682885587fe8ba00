"""Reads tables and queries of SQLite: one task reads all of it, as SQLite has no ranges to read at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.chosen_columns import chosen
from falcon_assets.features.datasources.datasource_type import ReadPart, ReadRequest, SourceColumn
from falcon_assets.features.datasources.queries import bound
from falcon_assets.features.datasources.row_batches import row_batches
from falcon_assets.features.datasources.types.sqlite.tables import opened, quoted, spark_type, types_of

if TYPE_CHECKING:
    import pyarrow as pa


@contextmanager
def open_reading(access: Access, request: ReadRequest) -> Iterator[SqliteReading]:
    """Raises DatasourceError where it cannot be read like that."""
    said, where = request.declared.source, f"{request.declared.source.what} of {access.name}"
    if request.declared.incremental is not None:
        raise DatasourceError(f"{where}: SQLite does not tell what was changed: write extract: full")
    with opened(access) as connection:
        if said.query is not None:
            times = {"start": _instant(request.start), "end": _instant(request.end)}
            place = f"({bound(said.query, 'sqlite', times)}\n)"
            found = connection.execute(" ".join(("SELECT * FROM", place, "LIMIT 0"))).description
            types = {str(name): "" for name, *_ in found}
        else:
            place, types = quoted(str(said.table)), types_of(connection, access, str(said.table))
    taken = chosen(tuple(types), request.declared.fields, where)
    columns = [SourceColumn(one, types[one], spark_type(types[one]), spark_type(types[one])) for one in taken]
    statement = " ".join(("SELECT", ", ".join(map(_selected, columns)), "FROM", place))
    yield SqliteReading(columns, [SqliteRows(access, where, statement, columns)])


@dataclass(frozen=True)
class SqliteReading:
    """As :class:`.SourceReading` says."""

    columns: Sequence[SourceColumn]
    parts: Sequence[ReadPart]
    low: None = None
    high: None = None
    behind: None = None


@dataclass(frozen=True)
class SqliteRows:
    """Rows of a statement; ``where`` names the source, for people."""

    access: Access
    where: str
    statement: str
    columns: Sequence[SourceColumn]

    def batches(self) -> Iterator[pa.RecordBatch]:
        with opened(self.access) as connection:
            cursor = connection.execute(self.statement)
            yield from row_batches(cursor, self.columns, self.where, self.access.throttle.rows_per_second)


def _selected(column: SourceColumn) -> str:
    """Text and bytes as such: a column may hold values of any type."""
    kind = {"string": "TEXT", "binary": "BLOB"}.get(column.arrives_as)
    return f"CAST({quoted(column.name)} AS {kind})" if kind else quoted(column.name)


def _instant(at: datetime) -> str:
    return f"'{at:%Y-%m-%d %H:%M:%S}'"
