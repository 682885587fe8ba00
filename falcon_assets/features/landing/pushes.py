"""Pushes: materializations that others reported to Dagster are checked, then recorded in full or refused."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import dagster as dg

from falcon_assets.errors import ExpressionError, StorageError, UnknownInstanceError
from falcon_assets.features.landing.circuit_breakers import Breakers
from falcon_assets.features.landing.landing_events import Landings, refused
from falcon_assets.features.landing.store import Push, pushes, set_incomplete
from falcon_assets.history.mapping.partitions import instant_of_key, key_of
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.planning.workloads import Workload
from falcon_assets.planning.writers import not_from_outside
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import is_about_path
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.snapshots import is_there, why_not_there
from falcon_assets.storage.landing import read

AT_ONCE = 500


@dataclass(frozen=True)
class Pushes:
    """Answers the pushes to the feeds of a cluster, each once; ``producers`` are by (feed, cluster)."""

    feeds: Mapping[str, Feed]
    producers: Callable[[str, str], Sequence[Workload]]
    cluster: Cluster
    files_of: Callable[[Feed], ClusterStore]
    breakers: Breakers

    def answer(self, ledger: Ledger, landings: Landings, give_up: float) -> int:
        """Answers waiting pushes, the oldest first; returns the number of recorded instances.

        Pushes wait while their store does not answer. The answer names its push, so a push that arrives during the
        check is checked again. ``give_up`` is a time of ``time.monotonic``; the ledger must be up to date.
        """
        cluster = self.cluster.name
        names = [name for name, feed in self.feeds.items() if feed.on(cluster)]
        with ledger.engine.connect() as connection:
            waiting = pushes(connection, cluster, names, AT_ONCE)
        recorded, came = 0, set[tuple[str, datetime]]()
        for push in waiting:
            if time.monotonic() > give_up:
                break
            try:
                event = self._event(self.feeds[push.feed], push, landings, came)
            except StorageError as error:
                if not is_about_path(error):
                    continue
                event = refused(cluster, push, str(error), is_partition=True)
            if event is None:
                continue
            ledger.instance.report_runless_asset_event(event)
            recorded += isinstance(event, dg.AssetMaterialization)
        if came:
            with ledger.engine.begin() as connection:
                set_incomplete(connection, cluster, came, ())
        return recorded

    def _event(
        self, feed: Feed, push: Push, landings: Landings, came: set[tuple[str, datetime]]
    ) -> dg.AssetMaterialization | dg.AssetObservation | None:
        """Returns the answer; None while the store must not be asked. Adds incomplete instances to ``came``."""
        instance, why = self._instance(feed, push.partition, landings.now)
        if instance is None:
            return refused(self.cluster.name, push, why, is_partition=False)
        try:
            path = InstancePaths(feed, self.cluster).data(instance)
        except ExpressionError as error:
            return refused(self.cluster.name, push, str(error), is_partition=True)
        files = self.files_of(feed)
        if self.breakers.open_for(files.endpoint):
            return None
        with self.breakers.watching(files.endpoint):
            kind = kind_of(files)
            known = (kind, feed, instance, path, landings.clock)
            asked = [(instance, path)] if not feed.snapshot or is_there(*known) else []
            for one in read(kind, feed, asked, {}, lambda instance: None, landings.admits(kind, feed)):
                return landings.event(files, feed, one, push)
            is_begun, why = why_not_there(*known)
            why = landings.why_withheld(feed, instance) or why
        if is_begun and not feed.snapshot:
            came.add((feed.name, instance))
        return refused(self.cluster.name, push, why, is_partition=True)

    def _instance(self, feed: Feed, partition: str, now: datetime) -> tuple[datetime | None, str]:
        """Returns the instance of a partition key; None, with the reason, where there is none to look for."""
        cluster = self.cluster.name
        if why := not_from_outside(feed, cluster, self.producers(feed.name, cluster)):
            return None, why
        line = feed_timeline(feed, cluster)
        like = f"its partitions are like {key_of(line, line.start)}"
        if not partition:
            return None, f"say which partition landed; {like}"
        instance = instant_of_key(partition)
        if instance is None:
            return None, f"{partition!r} is no partition of it; {like}"
        try:
            line.require(instance, f"feed {feed.name!r} on cluster {cluster!r}")
        except UnknownInstanceError as error:
            return None, str(error)
        if instance > now:
            return None, f"its time has not come, it is {format_instant(now)}; it is looked for from then on"
        return instance, ""
