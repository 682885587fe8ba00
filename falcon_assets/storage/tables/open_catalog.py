"""The catalog of a cluster, by its registry's endpoint: the one place where its kind is decided."""

from __future__ import annotations

from sqlalchemy import make_url

from falcon_assets.errors import StorageError
from falcon_assets.model.registry import ICEBERG, shown_registry
from falcon_assets.storage.tables.catalog import TableCatalog

_CONNECT_SECONDS = "5"


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
    database = make_url(url.replace(ICEBERG, "postgresql+psycopg2", 1))
    uri = database.update_query_dict({"connect_timeout": _CONNECT_SECONDS}).render_as_string(hide_password=False)
    return IcebergCatalog(cluster, shown_registry(endpoint), uri, name or "default", warehouse)
