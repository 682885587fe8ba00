"""Where the feeds of a cluster lie that retention goes over, also those that are declared no more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import FalconError
from falcon_assets.ledger.evictions import Eviction
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.table_uri import TableUri
from falcon_assets.orchestration.platform.data_roots import roots_of
from falcon_assets.planning.instances.instance_paths import InstancePaths
from falcon_assets.settings import Settings
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.feed_store import StoresOf
from falcon_assets.storage.roots import RootGuard
from falcon_assets.storage.tables.table_store import TableStore


@dataclass(frozen=True)
class RetentionStores:
    """The stores of one cluster's feeds; methods raise what a cluster or its options that cannot be used do.

    Attributes:
        store: The entities.
        cluster: The cluster.
        settings: Where everything lies.
    """

    store: EntityStore
    cluster: Cluster
    settings: Settings

    @cached_property
    def of_declared(self) -> StoresOf:
        """The store of each feed that is declared on the cluster."""
        return StoresOf(self.cluster, *self._where, self._roots)

    @property
    def _where(self) -> tuple[Path, Mapping[str, str]]:
        return self.settings.home, self.settings.environ

    @property
    def _roots(self) -> RootGuard:
        return roots_of(self.settings)

    def of(self, feed: str) -> ClusterStore:
        """The store of a feed; where it is no more declared, the cluster's own."""
        declared = self.store.feeds.get(feed)
        if declared is not None and declared.on(self.cluster.name) is not None:
            return self.of_declared(declared)
        return ClusterStore(self.cluster, *self._where, roots=self._roots)

    def where(self, one: Eviction) -> ClusterStore:
        """The store where an instance lies that is to go; its feed may be declared no more, or lie elsewhere now."""
        files = self.of(one.feed)
        if not is_in_table(one):
            return files.without_tables
        if isinstance(files, TableStore):
            return files
        uri = TableUri.parse(one.verdict.instance.locations[0].path)
        return TableStore(self.cluster, *self._where, table=uri, roots=self._roots)

    def archive(self, files: ClusterStore, cluster: str, root: str | None) -> ClusterStore:
        """The store of an archive on that cluster, for a feed that lies in ``files``."""
        if cluster == self.cluster.name:
            return files.at(root)
        return ClusterStore(self.store.cluster(cluster), *self._where, root=root, roots=self._roots)

    def all(self) -> Iterator[ClusterStore]:
        """Every store where the cluster's feeds lie; of those that cannot be used something was said already."""
        roots: dict[str | None, str] = {}
        for name, feed in self.store.feeds.items():
            if feed.on(self.cluster.name) is not None:
                with suppress(FalconError):
                    if feed.table_on(self.cluster.name):
                        yield self.of(name)
                    roots |= {root: name for root in InstancePaths(feed, self.cluster).roots if root not in roots}
        for root, name in {**roots, None: ""}.items():
            with suppress(FalconError):
                yield self.of(name).at(root)


def is_in_table(one: Eviction) -> bool:
    """Whether the instance that is to go is of a table."""
    return TableUri.is_one(one.verdict.instance.locations[0].path)
