"""The tables of a cluster, as a store: the paths of instances are their URIs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from falcon_assets.errors import StorageError
from falcon_assets.model.cluster import Cluster, RegistryInterface
from falcon_assets.model.registry import shown_registry
from falcon_assets.model.table_uri import TableUri
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.roots import RootGuard
from falcon_assets.storage.store_options import resolved_options
from falcon_assets.storage.tables.catalog import TableCatalog
from falcon_assets.storage.tables.open_catalog import open_catalog


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
