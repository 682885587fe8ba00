"""Events that collectors record: available instances, and refused pushes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.features.landing.rules import came_after
from falcon_assets.features.landing.store import Push
from falcon_assets.history.events.event_log import materialization, observation
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable, InstancesLanded, PushRefused
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.mapping.partitions import key_of
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.hooks import hooks, merged
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.settings import Settings
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.storage_kind import StorageKind
from falcon_assets.storage.landing import Collected, LandingGate


@dataclass(frozen=True)
class Landings:
    """Builds the events of a pass over a cluster, with what features say of its instances.

    Attributes:
        last_collected: When a collector last checked a feed.
        gates: Have to admit an instance; :meth:`finish` ends them.
    """

    clock: Clock
    now: datetime
    last_collected: Mapping[str, datetime]
    gates: Sequence[LandingGate] = ()

    def admits(self, kind: StorageKind, feed: Feed) -> Callable[[datetime, str], bool]:
        return lambda instance, path: all(gate.admits(kind, feed, instance, path) for gate in self.gates)

    def why_withheld(self, feed: Feed, instance: datetime) -> str:
        return next(filter(None, (gate.why_withheld(feed, instance) for gate in self.gates)), "")

    def finish(self) -> dict[str, str]:
        """Returns feed -> why its instances could not be decided on."""
        return merged(gate.finish() for gate in self.gates)

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
        kind = kind_of(store)
        more = [record for gate in self.gates for record in gate.records(kind, feed, one.instance, one.path)]
        return materialization(
            names.asset_key(store.cluster.name, feed.name),
            key_of(feed_timeline(feed, store.cluster.name), one.instance),
            landed,
            *more,
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
        more = [record for gate in self.gates for record in gate.summary(feed, instances)]
        key = names.asset_key(cluster, feed.name)
        return observation(key, None, landed, *more, description=f"{feed.name}: {found}")


def landings_on(
    ledger: Ledger,
    store: EntityStore,
    cluster: Cluster,
    settings: Settings,
    now: datetime,
    last_collected: Mapping[str, datetime],
) -> Landings:
    gates: list[LandingGate] = hooks().landing_gate(ledger=ledger, store=store, cluster=cluster, settings=settings)
    return Landings(settings.clock, now, last_collected, gates)


def refused(cluster: str, push: Push, why: str, is_partition: bool) -> dg.AssetObservation:
    """Answers a push whose data is missing or impossible: an observation, on the partition if that exists."""
    return observation(
        names.asset_key(cluster, push.feed),
        push.partition if is_partition else None,
        PushRefused(cluster, push.feed, push.partition, push.event_id, why),
        description=f"{push.feed} {push.partition or 'without a partition'} was reported and is not recorded: {why}",
    )
