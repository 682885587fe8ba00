"""Events that collectors record: available instances, and refused pushes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import dagster as dg

from falcon_assets.features.landing.rules import came_after
from falcon_assets.features.landing.store import Push
from falcon_assets.history.events.event_log import materialization, observation
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable, InstancesLanded, PushRefused
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.mapping.partitions import key_of
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.landing import Collected


@dataclass(frozen=True)
class Landings:
    """Builds the events of a tick; ``last_collected`` is when a collector last checked a feed."""

    clock: Clock
    now: datetime
    last_collected: Mapping[str, datetime]

    def event(
        self, store: ClusterStore, feed: Feed, one: Collected, push: Push | None = None
    ) -> dg.AssetMaterialization:
        is_real = self.clock.origin is None
        landed = FeedInstanceAvailable(
            store.cluster.name,
            feed.name,
            one.instance,
            one.version.version,
            self.now,
            one.version.bytes,
            files=one.version.files,
            signature=one.signature,
            looked_before=came_after(self.last_collected.get(feed.name), one.modified if is_real else None, self.now),
            modified_at=one.modified,
            pushed=push.partition if push else None,
            push_event=push.event_id if push else None,
            path=store.shown(one.path),
        )
        return materialization(
            names.asset_key(store.cluster.name, feed.name),
            key_of(feed_timeline(feed, store.cluster.name), one.instance),
            landed,
            description=f"{feed.name} {format_instant(one.instance)} landed",
        )

    def summary(self, cluster: str, feed: Feed, instances: Sequence[datetime]) -> dg.AssetObservation:
        """Summarizes a tick for a feed: of external assets the UI shows only observations as the latest event."""
        landed = InstancesLanded(len(instances), min(instances), max(instances), self.now)
        first, last = format_instant(landed.first), format_instant(landed.last)
        several, span = len(instances) > 1, f"{first} to {last}"
        if feed.snapshot:  # one refresh is the data of all of them
            found = f"refreshed: it is the data of {f'{len(instances)} instances, {span}' if several else first}"
        else:
            found = f"{len(instances)} instances landed, {span}" if several else f"{first} landed"
        return observation(names.asset_key(cluster, feed.name), None, landed, description=f"{feed.name}: {found}")


def refused(cluster: str, push: Push, why: str, is_partition: bool) -> dg.AssetObservation:
    """Answers a push whose data is missing or impossible: an observation, on the partition if that exists."""
    return observation(
        names.asset_key(cluster, push.feed),
        push.partition if is_partition else None,
        PushRefused(cluster, push.feed, push.partition, push.event_id, why),
        description=f"{push.feed} {push.partition or 'without a partition'} was reported and is not recorded: {why}",
    )
