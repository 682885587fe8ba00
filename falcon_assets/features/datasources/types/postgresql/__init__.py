"""PostgreSQL, and services that speak its protocol."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from urllib.parse import urlsplit

from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import (
    Dataset,
    DatasourceType,
    ReadRequest,
    SourceReading,
    TargetWriting,
    WriteRequest,
)

_FORM = "postgresql://HOST:PORT/DATABASE"
_LOGIN = ("user", "password", "passfile", "service")


class PostgresqlDatasource(DatasourceType):
    """Tables, views and queries of a database of PostgreSQL."""

    name = "postgresql"
    endpoint = _FORM
    driver = (
        *("application_name", "channel_binding", "connect_timeout", "gssencmode", "keepalives", "keepalives_count"),
        *("keepalives_idle", "keepalives_interval", "krbsrvname", "load_balance_hosts", "options", "sslcert", "sslcrl"),
        *("sslkey", "sslmode", "sslnegotiation", "sslpassword", "sslrootcert", "target_session_attrs"),
        "tcp_user_timeout",
    )
    reads = ("table", "query")
    loads = ("insert", "upsert", "replace_partition", "replace")

    def endpoint_problem(self, endpoint: str) -> str | None:
        """As libpq reads it: several hosts, and parameters such as ``?sslmode=require``, are allowed."""
        from psycopg2 import ProgrammingError  # noqa: PLC0415 - definitions are read without it
        from psycopg2.extensions import parse_dsn  # noqa: PLC0415

        if urlsplit(endpoint).scheme != "postgresql":
            return f"is not of the form {_FORM}"
        try:
            said = parse_dsn(endpoint)
        except ProgrammingError as error:
            return f"is not of the form {_FORM}: {str(error).strip().removeprefix('invalid dsn: ')}"
        if not said.get("dbname"):
            return f"names no database: write {_FORM}"
        if login := next((one for one in _LOGIN if one in said), None):
            return f"must not have {login}: write user and password as credential"
        return None

    def require_reachable(self, access: Access) -> None:
        from falcon_assets.features.datasources.types.postgresql.connecting import connected  # noqa: PLC0415

        with connected(access) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT 1")

    def datasets(self, access: Access, table: str | None = None) -> Iterator[Dataset]:
        from falcon_assets.features.datasources.types.postgresql.tables import datasets  # noqa: PLC0415

        return datasets(access, table)

    def open_reading(self, access: Access, request: ReadRequest) -> AbstractContextManager[SourceReading]:
        from falcon_assets.features.datasources.types.postgresql.reading import open_reading  # noqa: PLC0415

        return open_reading(access, request)

    def open_writing(self, access: Access, request: WriteRequest) -> AbstractContextManager[TargetWriting]:
        from falcon_assets.features.datasources.types.postgresql.writing import open_writing  # noqa: PLC0415

        return open_writing(access, request)
