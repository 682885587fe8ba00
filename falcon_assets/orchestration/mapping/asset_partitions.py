"""How the assets of feeds are partitioned."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from falcon_assets.catalog.store import EntityStore
from falcon_assets.model.feed import Feed
from falcon_assets.orchestration.mapping.partitions import key_of
from falcon_assets.planning.instances.input_partitions import FeedAsset, Rewriter
from falcon_assets.planning.replication.targets import replicated_timeline
from falcon_assets.planning.time.timeline import feed_timeline


@dataclass(frozen=True)
class AssetPartitions:
    """The partitions of all feeds; each is computed when it is asked for, and once."""

    store: EntityStore
    _of_feeds: dict[tuple[str, str], FeedAsset] = field(default_factory=dict, init=False)

    def of_feed(self, feed: Feed, cluster: str) -> FeedAsset:
        """How the asset of ``feed`` on ``cluster`` is partitioned, by whoever produces it."""
        key = (feed.name, cluster)
        if key not in self._of_feeds:
            self._of_feeds[key] = self._feed_asset(feed, cluster)
        return self._of_feeds[key]

    def partition_of(self, feed: Feed, cluster: str, instance: datetime) -> str:
        """The partition of the asset that stands for an instance: of several that write it the last one."""
        asset = self.of_feed(feed, cluster)
        return key_of(asset.partitions, max(asset.partitions_of(instance), default=instance))

    def _feed_asset(self, feed: Feed, cluster: str) -> FeedAsset:
        timeline = feed_timeline(feed, cluster)
        if self.store.replications_to(feed.name, cluster):
            return FeedAsset(replicated_timeline(feed, cluster) or timeline)
        for workload in self.store.producers(feed.name, cluster):
            partitions = workload.partitions
            if partitions.shift is None:
                output = next(output for output in workload.outputs if output.feed == feed.name)
                return FeedAsset(timeline, Rewriter(output, partitions.timeline, workload.timezone))
        return FeedAsset(timeline)
