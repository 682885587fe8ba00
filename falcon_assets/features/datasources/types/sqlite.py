"""SQLite: a file with a database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import Dataset, DatasetColumn, DatasourceType
from falcon_assets.features.datasources.unknown_tables import no_such_table

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
    return next((kind for part, kind in _AFFINITIES if part in said), "string" if said else "binary")


def _columns(connection: sqlite3.Connection, table: str) -> Iterator[DatasetColumn]:
    asked = connection.execute('SELECT name, type, "notnull" FROM pragma_table_xinfo(?) WHERE hidden <> 1', (table,))
    for name, declared, is_full in asked:
        yield DatasetColumn(name, declared.lower(), spark_type(declared), not is_full)
