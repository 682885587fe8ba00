"""Finds the store of a feed: the one place where a location that is a whole URL, or a table, becomes one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from falcon_assets.model.cluster import Cluster, StorageOption
from falcon_assets.model.feed import Feed
from falcon_assets.model.table_uri import TableUri
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.rollup_store import RollupStore
from falcon_assets.storage.roots import RootGuard
from falcon_assets.storage.tables.table_store import TableStore
from falcon_assets.storage.volumes import VolumesStore


def cluster_store(
    cluster: Cluster,
    home: Path,
    environ: Mapping[str, str],
    *,
    readonly: bool = False,
    options: Mapping[str, StorageOption] | None = None,
    roots: RootGuard | None = None,
) -> ClusterStore:
    """Returns the store of a cluster's endpoints, with ``options`` for URLs beside it; raises StorageError."""
    is_one = len(cluster.interfaces.write.volumes) == 1 or (readonly and cluster.interfaces.readonly)
    kind = ClusterStore if is_one else VolumesStore
    return kind(cluster, home, environ, readonly=readonly, options=options, roots=roots)


def store_of(
    feed: Feed,
    cluster: Cluster,
    home: Path,
    environ: Mapping[str, str],
    *,
    readonly: bool = False,
    roots: RootGuard | None = None,
) -> ClusterStore:
    """Returns the store of the feed's data; :meth:`ClusterStore.at` gives those of its other locations.

    Raises StorageError, or ExpressionError if the path template names an unknown variable or leaves its root.
    """
    if feed.table_on(cluster.name):
        uri = TableUri.parse(InstancePaths(feed, cluster).template.text)
        return TableStore(cluster, home, environ, readonly=readonly, table=uri, roots=roots)
    if feed.rollup:
        opened = dict[str, ClusterStore]()

        def member(one: Feed) -> ClusterStore:
            if one.name not in opened:
                opened[one.name] = store_of(one, cluster, home, environ, readonly=readonly, roots=roots)
            return opened[one.name]

        return RollupStore(feed, cluster, home, environ, member, readonly=readonly, roots=roots)
    options = feed.locations_on(cluster.name).storage_options
    root = InstancePaths(feed, cluster).root
    if root is None:
        return cluster_store(cluster, home, environ, readonly=readonly, options=options, roots=roots)
    return ClusterStore(cluster, home, environ, readonly=readonly, root=root, options=options, roots=roots)


@dataclass(frozen=True)
class StoresOf:
    cluster: Cluster
    home: Path
    environ: Mapping[str, str] = field(repr=False)
    roots: RootGuard | None = field(default=None, repr=False)
    readonly: bool = False
    _opened: dict[str, ClusterStore] = field(default_factory=dict, init=False)

    def __call__(self, feed: Feed) -> ClusterStore:
        if feed.name not in self._opened:
            where = (feed, self.cluster, self.home, self.environ)
            self._opened[feed.name] = store_of(*where, readonly=self.readonly, roots=self.roots)
        return self._opened[feed.name]
