"""SQLite: a file with a database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.chosen_columns import chosen
from falcon_assets.features.datasources.datasource_type import (
    Dataset,
    DatasetColumn,
    DatasourceType,
    ReadPart,
    ReadRequest,
    SourceColumn,
)
from falcon_assets.features.datasources.queries import bound
from falcon_assets.features.datasources.unknown_tables import no_such_table

if TYPE_CHECKING:
    import pyarrow as pa

_SCHEME = "sqlite:"
_FORM = "sqlite:PATH"
_WAIT_SECONDS = 10
_NAMES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite@_%' ESCAPE '@'"
_AFFINITIES = (
    *(("int", "bigint"), ("char", "string"), ("clob", "string"), ("text", "string"), ("blob", "binary")),
    *(("real", "double"), ("floa", "double"), ("doub", "double")),
)
"""Parts of the names of types -> Spark DDL types, in SQLite's order; all others may hold anything: strings."""


class SqliteDatasource(DatasourceType):
    """Tables and views of a file of SQLite, which all machines must have at the same path that read it."""

    name = "sqlite"
    endpoint = _FORM
    driver = ()
    reads: ClassVar = ("table", "query")

    def endpoint_problem(self, endpoint: str) -> str | None:
        """An absolute path, or one below FALCON_HOME."""
        path = endpoint.removeprefix(_SCHEME)
        if not endpoint.startswith(_SCHEME) or not path or path.startswith("//"):
            return f"is not of the form {_FORM}, with an absolute path, or one below FALCON_HOME"
        if ".." in PurePosixPath(path).parts or path.startswith("~"):
            return "must be an absolute path, or one below FALCON_HOME"
        return None

    def require_reachable(self, access: Access) -> None:
        with opened(access) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master")

    def datasets(self, access: Access, table: str | None = None) -> Iterator[Dataset]:
        with opened(access) as connection:
            names = sorted(name for (name,) in connection.execute(_NAMES))
            if table is not None and table not in names:
                raise no_such_table(access.name, table, names)
            for name in names if table is None else (table,):
                yield Dataset(name, tuple(_columns(connection, name)))

    @contextmanager
    def open_reading(self, access: Access, request: ReadRequest) -> Iterator[SqliteReading]:
        """All of it is one part, as SQLite has no ranges to read at once."""
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
                place, types = _quoted(str(said.table)), _types_of(connection, access, str(said.table))
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
        from falcon_assets.features.datasources.row_batches import row_batches  # noqa: PLC0415 - it loads Arrow

        with opened(self.access) as connection:
            cursor = connection.execute(self.statement)
            yield from row_batches(cursor, self.columns, self.where, self.access.throttle.rows_per_second)


@contextmanager
def opened(access: Access) -> Iterator[sqlite3.Connection]:
    """The database, only to be read; its errors become DatasourceError."""
    path = database_file(access)
    if not path.is_file():
        raise DatasourceError(f"datasource {access.name!r}: there is no file {path}")
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=_WAIT_SECONDS)) as made:
            yield made
    except sqlite3.Error as error:
        raise DatasourceError(f"datasource {access.name!r}: {path}: {error}") from None


def database_file(access: Access) -> Path:
    """Returns the path of the file."""
    return access.home / access.endpoint.removeprefix(_SCHEME)


def spark_type(declared: str) -> str:
    """Returns the Spark DDL type for a declared type, by SQLite's rules of affinity."""
    said = declared.lower()
    return next((kind for part, kind in _AFFINITIES if part in said), "string")


def _columns(connection: sqlite3.Connection, table: str) -> Iterator[DatasetColumn]:
    asked = connection.execute('SELECT name, type, "notnull" FROM pragma_table_xinfo(?) WHERE hidden <> 1', (table,))
    for name, declared, is_full in asked:
        yield DatasetColumn(name, declared.lower(), spark_type(declared), not is_full)


def _types_of(connection: sqlite3.Connection, access: Access, table: str) -> dict[str, str]:
    if found := {one.name: one.source_type for one in _columns(connection, table)}:
        return found
    raise no_such_table(access.name, table, sorted(name for (name,) in connection.execute(_NAMES)))


def _selected(column: SourceColumn) -> str:
    """Text and bytes as such: a column may hold values of any type."""
    kind = {"string": "TEXT", "binary": "BLOB"}.get(column.arrives_as)
    return f"CAST({_quoted(column.name)} AS {kind})" if kind else _quoted(column.name)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _instant(at: datetime) -> str:
    return f"'{at:%Y-%m-%d %H:%M:%S}'"
