"""The file of a database of SQLite, its tables and views, and their columns."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import DatasetColumn
from falcon_assets.features.datasources.unknown_tables import no_such_table

SCHEME = "sqlite:"
_WAIT_SECONDS = 10
_NAMES = """
    SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite@_%' ESCAPE '@'
"""
_AFFINITIES = (
    *(("int", "bigint"), ("char", "string"), ("clob", "string"), ("text", "string"), ("blob", "binary")),
    *(("real", "double"), ("floa", "double"), ("doub", "double")),
)
"""Parts of the names of types -> Spark DDL types, in SQLite's order; all others may hold anything: strings."""


@contextmanager
def opened(access: Access) -> Iterator[sqlite3.Connection]:
    """The database, only to be read; its errors become DatasourceError."""
    path = database_file(access)
    if not path.is_file():
        raise DatasourceError(f"datasource {access.name!r}: there is no file {path}")
    place = f"file:{quote(str(path))}?mode=ro"
    with said_of(access, path), closing(sqlite3.connect(place, uri=True, timeout=_WAIT_SECONDS)) as made:
        yield made


@contextmanager
def said_of(access: Access, file: Path) -> Iterator[None]:
    """Within the block, errors of SQLite become DatasourceError."""
    try:
        yield
    except sqlite3.Error as error:
        raise DatasourceError(f"datasource {access.name!r}: {file}: {error}") from None


def table_names(connection: sqlite3.Connection) -> dict[str, str]:
    """Returns the names of tables and views, with ``table`` or ``view``."""
    return dict(connection.execute(_NAMES).fetchall())


def database_file(access: Access) -> Path:
    """Returns the path of the file."""
    return access.home / access.endpoint.removeprefix(SCHEME)


def spark_type(declared: str, of_any: str = "string") -> str:
    """Returns the Spark DDL type for a declared type, by SQLite's rules; ``of_any``: that of one that holds any."""
    said = declared.lower()
    return next((kind for part, kind in _AFFINITIES if part in said), of_any)


def columns_of(connection: sqlite3.Connection, table: str) -> Iterator[DatasetColumn]:
    asked = connection.execute('SELECT name, type, "notnull" FROM pragma_table_xinfo(?) WHERE hidden <> 1', (table,))
    for name, declared, is_full in asked:
        yield DatasetColumn(name, declared.lower(), spark_type(declared), not is_full)


def types_of(connection: sqlite3.Connection, access: Access, table: str) -> dict[str, str]:
    if found := {one.name: one.source_type for one in columns_of(connection, table)}:
        return found
    raise no_such_table(access.name, table, sorted(table_names(connection)))


def quoted(name: str) -> str:
    """A name in SQL, as it is spelled."""
    return '"' + name.replace('"', '""') + '"'
