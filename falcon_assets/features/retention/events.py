"""Events of retention on assets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import dagster as dg

from falcon_assets.features.retention.archives import ArchiveVerdict
from falcon_assets.features.retention.store import Eviction
from falcon_assets.history.events.event_log import observation
from falcon_assets.history.events.feed_instances import (
    FeedArchiveExpired,
    FeedInstanceEvicted,
    FeedVersionEvicted,
    InstancesKept,
    KeptInstance,
)
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.mapping.partitions import AssetPartitions
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.eviction import VersionVerdict
from falcon_assets.planning.reasons import Reason

_SHOWN = 1000


class EvictionEvents:
    """Builds the events about instances of one cluster; times are on the falcon clock."""

    def __init__(self, feeds: Mapping[str, Feed], cluster: str, partitions: AssetPartitions) -> None:
        self._feeds, self._cluster, self._partitions = feeds, cluster, partitions

    def event(self, one: Eviction, at: datetime) -> dg.AssetObservation:
        verdict = one.verdict
        done = f"archived to {verdict.archive_place}" if verdict.archive_place else "deleted"
        gone = FeedInstanceEvicted(
            one.cluster,
            one.feed,
            one.instance,
            verdict.action,
            at,
            one.bytes,
            one.files,
            verdict.reason,
            verdict.archive_place,
            one.archive_cluster,
        )
        said = f"{one.feed} {format_instant(one.instance)} was evicted ({done}): {verdict.reason}"
        partition = self._partition(one.feed, one.cluster, one.instance)
        return observation(names.asset_key(one.cluster, one.feed), partition, gone, description=said)

    def version(self, feed: str, one: VersionVerdict, at: datetime) -> dg.AssetObservation:
        kept = one.kept
        gone = FeedVersionEvicted(self._cluster, feed, kept.nominal, kept.version, at, one.reason, one.bytes or None)
        said = f"version {kept.version} of {feed} {format_instant(kept.nominal)} was removed: {one.reason}"
        partition = self._partition(feed, self._cluster, kept.nominal)
        return observation(names.asset_key(self._cluster, feed), partition, gone, description=said)

    def archive(self, one: ArchiveVerdict, version: str | None, at: datetime) -> dg.AssetObservation:
        was, place = one.archived, one.archived.verdict.archive_place or ""
        key = (was.cluster, was.feed, was.instance)
        gone = FeedArchiveExpired(*key, place, at, was.bytes, one.reason, was.archive_cluster, version)
        said = f"{was.feed} {format_instant(was.instance)} was removed from its archive {place}: {one.reason}"
        partition = self._partition(was.feed, was.cluster, was.instance)
        return observation(names.asset_key(was.cluster, was.feed), partition, gone, description=said)

    def kept(self, feed: str, kept_by: Sequence[tuple[datetime, Reason]], at: datetime) -> dg.AssetObservation:
        shown = tuple(KeptInstance(nominal, str(reason), reason.as_data()) for nominal, reason in kept_by[:_SHOWN])
        kept = InstancesKept(len(kept_by), shown, at)
        said = f"{feed}: {len(kept_by)} outlived their limit and are kept"
        return observation(names.asset_key(self._cluster, feed), None, kept, description=said)

    def _partition(self, name: str, cluster: str, instance: datetime) -> str:
        feed = self._feeds.get(name)
        if feed is None or feed.on(cluster) is None:
            return format_instant(instance)  # the asset is no more, and nobody can say how it was partitioned
        return self._partitions.partition_of(feed, self._cluster, instance)
