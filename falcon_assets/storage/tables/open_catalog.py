"""The catalog of a cluster, by its registry's endpoint: the one place where its kind is decided."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from falcon_assets.errors import StorageError
from falcon_assets.model.registry import ICEBERG, is_rest, shown_registry
from falcon_assets.storage.tables.catalog import TableCatalog


def open_catalog(
    cluster: str,
    endpoint: str,
    warehouse: str,
    options: Mapping[str, object] = MappingProxyType({}),
    files: Mapping[str, object] | None = None,
) -> TableCatalog:
    """Asks nothing yet. ``warehouse`` is for new tables, ``files`` are s3fs's options of a cluster on S3."""
    shown = shown_registry(endpoint)
    extra = "hive" if endpoint.startswith("thrift://") else "iceberg"
    try:
        if extra == "hive":
            from falcon_assets.storage.tables.hive import HiveCatalog  # noqa: PLC0415 - an optional dependency

            return HiveCatalog(cluster, endpoint)
        from falcon_assets.storage.tables.iceberg import IcebergCatalog  # noqa: PLC0415 - an optional dependency
        from falcon_assets.storage.tables.iceberg_services import (  # noqa: PLC0415 - the same
            database,
            file_options,
            rest,
        )
    except ImportError as error:
        raise StorageError(
            f"cluster {cluster!r}: cannot use the registry: {error}; pip install 'falcon-assets[{extra}]'"
        ) from error
    url, _, name = endpoint.removeprefix(ICEBERG).partition("#")
    told = options if files is None else {**file_options(files), **options}
    opened = partial(rest, url, name, told) if is_rest(endpoint) else partial(database, url, name, warehouse, told)
    return IcebergCatalog(cluster, shown, opened)
