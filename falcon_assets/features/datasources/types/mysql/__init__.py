"""MySQL and MariaDB."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import ClassVar
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

_FORM = "mysql://HOST:PORT/DATABASE"


class MysqlDatasource(DatasourceType):
    """Tables, views and queries of a database of MySQL or MariaDB."""

    name = "mysql"
    endpoint = _FORM
    package = "falcon-assets[mysql]"
    module = "pymysql"
    driver: ClassVar = (
        *("connect_timeout", "read_timeout", "ssl_ca", "ssl_cert", "ssl_disabled", "ssl_key", "ssl_key_password"),
        *("ssl_verify_cert", "ssl_verify_identity", "unix_socket", "write_timeout"),
    )

    reads: ClassVar = ("table", "query")
    loads: ClassVar = ("insert", "upsert", "replace_partition", "replace")

    def endpoint_problem(self, endpoint: str) -> str | None:
        try:
            said = urlsplit(endpoint)
            is_well = said.scheme == "mysql" and said.hostname and said.port != 0
        except ValueError:
            is_well = False
        if not is_well or said.query or said.fragment:
            return f"is not of the form {_FORM}"
        if said.username is not None:
            return "must not have a user: write it as credential"
        database = said.path.strip("/")
        return None if database and "/" not in database else f"names no database: write {_FORM}"

    def require_reachable(self, access: Access) -> None:
        from falcon_assets.features.datasources.types.mysql.connecting import connected  # noqa: PLC0415

        with connected(access) as cursor:
            cursor.execute("SELECT 1")

    def datasets(self, access: Access, table: str | None = None) -> Iterator[Dataset]:
        from falcon_assets.features.datasources.types.mysql.tables import datasets  # noqa: PLC0415

        return datasets(access, table)

    def open_reading(self, access: Access, request: ReadRequest) -> AbstractContextManager[SourceReading]:
        from falcon_assets.features.datasources.types.mysql.reading import open_reading  # noqa: PLC0415 - with Arrow

        return open_reading(access, request)

    def open_writing(self, access: Access, request: WriteRequest) -> AbstractContextManager[TargetWriting]:
        from falcon_assets.features.datasources.types.mysql.connecting import require_driver  # noqa: PLC0415

        require_driver(access)
        from falcon_assets.features.datasources.types.mysql.writing import open_writing  # noqa: PLC0415 - of an extra

        return open_writing(access, request)
