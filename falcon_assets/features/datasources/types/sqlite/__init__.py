"""SQLite: a file with a database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import PurePosixPath
from typing import ClassVar

from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import (
    Dataset,
    DatasourceType,
    ReadRequest,
    SourceReading,
    TargetWriting,
    WriteRequest,
)
from falcon_assets.features.datasources.types.sqlite.tables import SCHEME, columns_of, opened, table_names
from falcon_assets.features.datasources.unknown_tables import no_such_table

_FORM = f"{SCHEME}PATH"


class SqliteDatasource(DatasourceType):
    """Tables and views of a file of SQLite, which all machines must have at the same path that read or write it."""

    name = "sqlite"
    endpoint = _FORM
    driver = ()
    reads: ClassVar = ("table", "query")
    loads: ClassVar = ("insert", "upsert", "replace_partition", "replace")
    loads_in_parallel = False

    def endpoint_problem(self, endpoint: str) -> str | None:
        """An absolute path, or one below FALCON_HOME."""
        path = endpoint.removeprefix(SCHEME)
        if not endpoint.startswith(SCHEME) or not path or path.startswith("//"):
            return f"is not of the form {_FORM}, with an absolute path, or one below FALCON_HOME"
        if ".." in PurePosixPath(path).parts or path.startswith("~"):
            return "must be an absolute path, or one below FALCON_HOME"
        return None

    def require_reachable(self, access: Access) -> None:
        with opened(access) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master")

    def datasets(self, access: Access, table: str | None = None) -> Iterator[Dataset]:
        with opened(access) as connection:
            names = sorted(table_names(connection))
            if table is not None and table not in names:
                raise no_such_table(access.name, table, names)
            for name in names if table is None else (table,):
                yield Dataset(name, tuple(columns_of(connection, name)))

    def open_reading(self, access: Access, request: ReadRequest) -> AbstractContextManager[SourceReading]:
        from falcon_assets.features.datasources.types.sqlite.reading import open_reading  # noqa: PLC0415

        return open_reading(access, request)

    def open_writing(self, access: Access, request: WriteRequest) -> AbstractContextManager[TargetWriting]:
        from falcon_assets.features.datasources.types.sqlite.writing import open_writing  # noqa: PLC0415

        return open_writing(access, request)
