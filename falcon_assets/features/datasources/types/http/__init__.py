"""The type ``http``: resources of an HTTP service that answers in JSON."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import (
    Dataset,
    DatasetColumn,
    DatasourceType,
    ReadRequest,
    TargetWriting,
    WriteRequest,
)

if TYPE_CHECKING:
    from falcon_assets.features.datasources.types.http.reading import ResourceReading


class Http(DatasourceType):
    """Resources of an HTTP service."""

    name = "http"
    endpoint = "https://host/api"
    package = "falcon-assets[http]"
    module = "dlt"
    reads: ClassVar = ("table", "query")
    loads: ClassVar = ("insert",)
    declares_columns = False

    def endpoint_problem(self, endpoint: str) -> str | None:
        split = urlsplit(endpoint)
        is_right = split.scheme in ("http", "https") and split.hostname and not split.query and not split.fragment
        return None if is_right else f"write {self.endpoint}"

    def require_reachable(self, access: Access) -> None:
        """Asks for the endpoint itself: any answer but a refused login will do, as services have no common one."""
        from falcon_assets.features.datasources.types.http.reading import ask  # noqa: PLC0415 - of an extra

        ask(access)

    def datasets(self, access: Access, table: str | None = None) -> Iterator[Dataset]:
        """A service does not tell its resources: only a given one is shown, by its first page."""
        from falcon_assets.features.datasources.types.http.reading import first_columns  # noqa: PLC0415 - of an extra

        self.require_reachable(access)
        if table is not None:
            columns = first_columns(access, table)
            yield Dataset(
                table, tuple(DatasetColumn(one.name, one.source_type, one.spark_type, True) for one in columns)
            )

    def open_reading(self, access: Access, request: ReadRequest) -> AbstractContextManager[ResourceReading]:
        from falcon_assets.features.datasources.types.http.reading import reading  # noqa: PLC0415 - of an extra

        return reading(access, request)

    def open_writing(self, access: Access, request: WriteRequest) -> AbstractContextManager[TargetWriting]:
        from falcon_assets.features.datasources.types.http.writing import open_writing  # noqa: PLC0415 - with requests

        return open_writing(access, request)
