"""The catalog of a cluster, by its registry's endpoint: the one place where its kind is decided."""

from __future__ import annotations

from urllib.parse import urlsplit

from falcon_assets.errors import StorageError
from falcon_assets.storage.tables.catalog import TableCatalog


def open_catalog(cluster: str, endpoint: str, warehouse: str) -> TableCatalog:
    """The catalog behind a legal endpoint; nothing is asked yet.

    Args:
        cluster: Whose registry it is.
        endpoint: Its endpoint.
        warehouse: URL of the folder for tables that are made.

    Raises:
        StorageError: the packages for it are not installed.
    """
    extra = "hive" if endpoint.startswith("thrift://") else "iceberg"
    try:
        if extra == "hive":
            from falcon_assets.storage.tables.hive import HiveCatalog  # noqa: PLC0415 - an optional dependency

            return HiveCatalog(cluster, endpoint)
        from falcon_assets.storage.tables.iceberg import IcebergCatalog  # noqa: PLC0415 - an optional dependency
    except ImportError as error:
        raise StorageError(
            f"cluster {cluster!r}: cannot use the registry: {error}; pip install 'falcon-assets[{extra}]'"
        ) from error
    url, _, name = endpoint.partition("#")
    uri = url.replace("iceberg+postgresql://", "postgresql+psycopg2://", 1)
    parts = urlsplit(uri)
    shown = f"iceberg+postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}"
    return IcebergCatalog(cluster, shown, uri, name or "default", warehouse)
