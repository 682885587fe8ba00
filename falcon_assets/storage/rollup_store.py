"""The instances of a roll-up, as a store: its paths are names, and what they stand for lies in the members' stores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.rollups import MemberOf, members_of
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.roots import RootGuard


class RollupStore(ClusterStore):
    """The cluster's own store; ``store_of`` opens those of members."""

    def __init__(
        self,
        feed: Feed,
        cluster: Cluster,
        home: Path,
        environ: Mapping[str, str],
        store_of: Callable[[Feed], ClusterStore],
        *,
        readonly: bool = False,
        roots: RootGuard | None = None,
    ) -> None:
        super().__init__(cluster, home, environ, readonly=readonly, roots=roots)
        self.feed = feed
        self.members: list[MemberOf] = members_of(feed, cluster.name)
        self.store_of = store_of

    def shown(self, path: str) -> str:
        instance = InstancePaths(self.feed, self.cluster).instance(path)
        names = ", ".join(one.feed.name for one in self.members)
        return f"{names} in {format_instant(instance)}" if instance else names
