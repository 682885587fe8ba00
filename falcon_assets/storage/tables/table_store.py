"""The tables of a cluster, as a store: the paths of instances are their URIs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType

from falcon_assets.errors import StorageError
from falcon_assets.model.cluster import Cluster, RegistryInterface
from falcon_assets.model.table_catalog_url import ICEBERG, is_rest, shown_registry
from falcon_assets.model.table_uri import TableUri
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.roots import RootGuard
from falcon_assets.storage.store_options import resolved_options
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
            from falcon_assets.storage.tables.hive_partitions import HiveCatalog  # noqa: PLC0415 - an optional dependency

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
    settings = options if files is None else {**file_options(files), **options}
    opened = (
        partial(rest, url, name, settings) if is_rest(endpoint) else partial(database, url, name, warehouse, settings)
    )
    return IcebergCatalog(cluster, shown, opened)


class TableStore(ClusterStore):
    """The cluster's own store, with the catalog that says where in it, or elsewhere, partitions of tables are."""

    def __init__(
        self,
        cluster: Cluster,
        home: Path,
        environ: Mapping[str, str],
        *,
        readonly: bool = False,
        table: TableUri | None = None,
        roots: RootGuard | None = None,
    ) -> None:
        super().__init__(cluster, home, environ, readonly=readonly, roots=roots)

        def open_registry(registry: RegistryInterface) -> TableCatalog:
            options = resolved_options(cluster.name, registry.endpoint, registry.storage_options, environ)
            files = self.fs.storage_options if "s3" in self.fs.protocol else None
            return open_catalog(cluster.name, registry.endpoint, self.url("/tables"), options, files)

        self._open = open_registry  # what a closure knows of the environment is shown nowhere
        self.table = table

    @cached_property
    def catalog(self) -> TableCatalog:
        """Raises StorageError if the cluster has none, its packages are not installed, or a variable is not set."""
        registry = self.cluster.interfaces.registry
        if registry is None:
            raise StorageError(f"cluster {self.cluster.name!r} declares no interfaces.registry, where tables are found")
        return self._open(registry)

    @property
    def without_tables(self) -> ClusterStore:
        return self._other(None)

    def shown(self, relative: str) -> str:
        return relative

    @property
    def endpoint(self) -> str:
        """The registry, without credentials; without one, as of other stores."""
        registry = self.cluster.interfaces.registry
        return super().endpoint if registry is None else shown_registry(registry.endpoint)
