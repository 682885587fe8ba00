"""Plans of retention, and the stores of the feeds concerned, also of feeds that are not declared any more."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from typing import Any

import dagster as dg
from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.status import EntityStatus, statuses
from falcon_assets.errors import FalconError, StorageError
from falcon_assets.features.retention.archives import ArchiveVerdict, plan_archives
from falcon_assets.features.retention.copies import CopyVerdict, plan_copies
from falcon_assets.features.retention.pending_readers import PendingReaders
from falcon_assets.features.retention.store import Eviction, archived
from falcon_assets.history import queries
from falcon_assets.history.database import parts
from falcon_assets.history.folding.kept_versions import KnownVersions, known_versions
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.hooks import hooks
from falcon_assets.instances.runs.dead_runs import unfinished_runs
from falcon_assets.instances.store.former_instances import (
    EntityTimeline,
    Places,
    former_places,
    holds_former,
    redefined,
)
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.model.table_uri import TableUri
from falcon_assets.operations.data_roots import roots_of
from falcon_assets.planning.eviction import Verdict, VersionVerdict, before, plan_eviction, plan_versions
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.reasons import Reason
from falcon_assets.planning.reasons_to_keep import Need, ProtectedVersions
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.settings import Settings
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.eviction.unfinished_copies import UnfinishedCopy, unfinished_copies
from falcon_assets.storage.feed_store import StoresOf, cluster_store
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.tables.table_store import TableStore


@dataclass(frozen=True)
class RetentionStores:
    """The stores of one cluster's feeds; methods raise where the cluster or its options cannot be used."""

    store: EntityStore
    cluster: Cluster
    settings: Settings

    @cached_property
    def of_declared(self) -> StoresOf:
        return StoresOf(self.cluster, self.settings.home, self.settings.environ, roots_of(self.settings))

    def of(self, feed: str) -> ClusterStore:
        declared = self.store.feeds.get(feed)
        if declared is not None and declared.on(self.cluster.name) is not None:
            return self.of_declared(declared)
        return self._open(self.cluster)

    def where(self, one: Eviction) -> ClusterStore:
        """Returns the store of an instance to evict; its feed may be deleted, or have another place now."""
        files = self.of(one.feed)
        if not is_in_table(one):
            return files.without_tables
        if isinstance(files, TableStore):
            return files
        uri = TableUri.parse(one.verdict.instance.locations[0].path)
        roots = roots_of(self.settings)
        return TableStore(self.cluster, self.settings.home, self.settings.environ, table=uri, roots=roots)

    def archive(self, files: ClusterStore, cluster: str, root: str | None) -> ClusterStore:
        if cluster == self.cluster.name:
            return files.at(root)
        return self._open(self.store.cluster(cluster), root)

    def _open(self, cluster: Cluster, root: str | None = None) -> ClusterStore:
        where = (cluster, self.settings.home, self.settings.environ)
        if root is None:
            return cluster_store(*where, roots=roots_of(self.settings))
        return ClusterStore(*where, root=root, roots=roots_of(self.settings))

    def all(self) -> Iterator[ClusterStore]:
        """Yields every usable store of the cluster's feeds; unusable ones were reported before."""
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
    return TableUri.is_one(one.verdict.instance.locations[0].path)


_FEEDS_PER_SNAPSHOT = 50
"""Feeds in a snapshot, which holds the arrived instances of their targets: more would need much memory."""
_FRESH_SECONDS = 10.0
"""The age limit of a snapshot: feeds may take hours, and others may begin to need what is to be evicted."""


@dataclass(frozen=True)
class FeedPlan:
    """The verdicts on the instances of a feed on a cluster, the oldest first; only RUNNING feeds are evicted.

    Attributes:
        problem: Why there are no verdicts; "" where there are.
        copies: Verdicts on staged data of instances that never arrived.
        versions: Verdicts on replaced versions that are kept.
        archives: Verdicts on archived instances, where any may go.
    """

    feed: Feed
    cluster: Cluster
    status: EntityStatus
    verdicts: tuple[Verdict, ...]
    problem: str = ""
    copies: tuple[CopyVerdict, ...] = ()
    versions: tuple[VersionVerdict, ...] = ()
    archives: tuple[ArchiveVerdict, ...] = ()

    @property
    def kept(self) -> list[tuple[datetime, Reason]]:
        """Instances, then those of versions, that exceed their limit, with the reasons to keep them."""
        found = [(one.instance.nominal, one.kept_by) for one in self.verdicts]
        found += [(one.kept.nominal, one.kept_by) for one in self.versions]
        return [(nominal, reason) for nominal, reason in found if reason]

    def as_data(self) -> dict[str, Any]:
        return {
            "feed": self.feed.name,
            "cluster": self.cluster.name,
            "status": self.status.status.value,
            "instances": [_verdict(one, self) for one in self.verdicts],
            **({"unfinished_copies": list(map(_copy, self.copies))} if self.copies else {}),
            **({"versions": list(map(_version, self.versions))} if self.versions else {}),
            **({"archives": list(map(_archive, self.archives))} if self.archives else {}),
            **({"problem": self.problem} if self.problem else {}),
        }


def _copy(one: CopyVerdict) -> dict[str, Any]:
    return {
        "instance": format_instant(one.verdict.instance.nominal),
        "action": one.verdict.action,
        "reason": one.verdict.reason,
        "path": one.copy.path,
        "sources": list(one.copy.sources),
    }


def _version(one: VersionVerdict) -> dict[str, Any]:
    return {
        "instance": format_instant(one.kept.nominal),
        "version": one.kept.version,
        "action": "delete" if one.goes else "keep",
        "reason": one.reason,
        **({"kept_by": one.kept_by.as_data()} if one.kept_by else {}),
        "replaced_at": format_instant(one.replaced_at) if one.replaced_at else None,
        "path": one.kept.path,
    }


def _archive(one: ArchiveVerdict) -> dict[str, Any]:
    return {
        "instance": format_instant(one.archived.instance),
        "action": "delete" if one.goes else "keep",
        "reason": one.reason,
        **({"kept_by": one.kept_by.as_data()} if one.kept_by else {}),
        "archived_to": one.archived.verdict.archive_place,
        "archive_cluster": one.archived.archive_cluster,
        "archived_at": format_instant(one.archived.decided_at),
    }


def _verdict(one: Verdict, of: FeedPlan) -> dict[str, Any]:
    entry = of.feed.on(of.cluster.name)
    archive_cluster = entry.retention.archive_cluster if entry and entry.retention else None
    return {
        "instance": format_instant(one.instance.nominal),
        "action": one.action,
        "reason": one.reason,
        **({"kept_by": one.kept_by.as_data()} if one.kept_by else {}),
        "paths": [location.place for location in one.instance.locations],
        **({"archive_to": one.archive_place} if one.archive_place else {}),
        **({"archive_cluster": archive_cluster} if one.archive_to and archive_cluster else {}),
    }


class RetentionSnapshot:
    """The state of feeds by the up-to-date ledger at one moment; records new statuses. ``runs`` are unfinished.

    With ``only_kept`` it is about kept versions and archives only, and lists no instances.
    """

    def __init__(
        self,
        connection: Connection,
        store: EntityStore,
        stores: StoresOf,
        feeds: Sequence[Feed],
        now: datetime,
        runs: Sequence[dg.DagsterRun] = (),
        *,
        only_kept: bool = False,
    ) -> None:
        self._only_kept = only_kept
        self.feeds = frozenset(feed.name for feed in feeds)
        self._cluster = cluster = stores.cluster
        self._now = now
        self._files: dict[str, ClusterStore] = {}
        self._problems: dict[str, str] = {}
        self._unfinished: dict[str | None, list[UnfinishedCopy]] = {}
        for feed in feeds:
            try:
                self._files[feed.name] = stores(feed)
            except FalconError as error:
                self._problems[feed.name] = str(error)
        self._unreadable: dict[str | None, str] = {}
        for root, files in {} if only_kept else {one.root: one for one in self._files.values()}.items():
            try:
                self._unfinished[root] = unfinished_copies(files)
            except StorageError as error:
                self._unreadable[root] = str(error)
        self._status = statuses(connection, feeds, now)
        with_copies = any(self._unfinished.values())
        self._needs = PendingReaders(connection, store, cluster, feeds, now, with_copies=with_copies, runs=runs)
        retained = [(one, entry.retention) for one in feeds if (entry := one.on(cluster.name)) and entry.retention]
        young = {one.name: now for one, retention in retained if retention.future == "delete"}
        young |= {
            one.name: before(now, retention.minimum_age, one.timezone)
            for one, retention in retained
            if retention.minimum_age
        }
        self._former = self._former_places(connection, feeds)
        self._landed = queries.seen(connection, cluster.name, young)
        self._versions = known_versions(connection, cluster.name, self.feeds)
        limited = [one.name for one, retention in retained if only_kept or retention.archive_limit]
        self._archived = archived(connection, cluster.name, limited) if limited else {}
        self._protected = defaultdict[str, ProtectedVersions](ProtectedVersions)
        asked = {"connection": connection, "cluster": cluster.name, "feeds": self.feeds, "store": store}
        for found in hooks().protected_versions(**asked):
            for feed, one in found.items():
                self._protected[feed].instances.update(one.instances)
                self._protected[feed].versions.update(one.versions)

    def plan(self, feed: Feed) -> FeedPlan:
        status = self._status[feed.kind, feed.name]
        files = self._files.get(feed.name)
        problem = self._unreadable.get(files.root) if files else self._problems[feed.name]
        if files is None or problem:
            return FeedPlan(feed, self._cluster, status, (), problem or "")
        try:
            entry = feed.on(self._cluster.name)
            keeps = feed.versions is not None or feed.name in self._versions
            only_versions = self._only_kept or (keeps and not (entry and entry.retention))
            found = [] if only_versions else kind_of(files).stored(feed)
            paths, landed = InstancePaths(feed, self._cluster), self._landed.get(feed.name, {})
            protected = self._protected[feed.name]
            needs: list[Need] = [*self._needs.of(feed, [one.nominal for one in found]), protected.instances.get]
            if former := self._former.get(feed.name):
                needs.append(lambda nominal: holds_former(files, paths.data(nominal), former))
            verdicts = plan_eviction(paths, found, self._now, needs, landed.get)
            unfinished = self._unfinished.get(files.root, [])
            copies = plan_copies(unfinished, paths, found, self._now, partial(self._needs.of_copies, feed))
            versions = self._plan_versions(feed, files, protected.versions)
        except FalconError as error:
            return FeedPlan(feed, self._cluster, status, (), str(error))
        limit = entry.retention.archive_limit if entry and entry.retention else None
        there = self._archived.get(feed.name, ())
        archives = plan_archives(there, limit, self._now, feed.timezone, protected.instances.get)
        kept = tuple(copies), tuple(versions), tuple(archives)
        return FeedPlan(feed, self._cluster, status, tuple(verdicts), "", *kept)

    def _former_places(self, connection: Connection, feeds: Sequence[Feed]) -> dict[str, Places]:
        """Feed -> places of its earlier definitions, which are never evicted."""
        here = self._cluster.name
        in_files = (one for one in feeds if one.on(here) and not one.snapshot and one.table_on(here) is None)
        lines = [EntityTimeline(one.kind, one.name, here, feed_timeline(one, here)) for one in in_files]
        return {
            name: former_places(connection, here, name, line, line.start, line.end)
            for _, name, _, line in redefined(connection, lines)
        }

    def _plan_versions(
        self, feed: Feed, files: ClusterStore, protected: Mapping[tuple[datetime, str], Reason]
    ) -> list[VersionVerdict]:
        known = self._versions.get(feed.name, KnownVersions())
        if feed.versions is None and not known.replaced:
            return []
        kind = kind_of(files)
        kind.require_there()
        found, replaced = kind.kept_versions(feed.name), known.replaced
        if kind.away():  # what is not seen may lie there
            seen = {(one.nominal, one.version) for one in found}
            replaced = {key: at for key, at in replaced.items() if key in seen}
        known_so_far = (replaced, known.evicted, protected, known.bytes)
        return plan_versions(found, feed.versions, self._now, feed.timezone, *known_so_far)


def plan_retention(
    connection: Connection,
    store: EntityStore,
    stores: StoresOf,
    feeds: Iterable[Feed],
    now: datetime,
    runs: Sequence[dg.DagsterRun] = (),
    *,
    only_kept: bool = False,
) -> Iterator[FeedPlan]:
    """Plans feeds lazily; a feed with a problem delays no other. Arguments as :class:`RetentionSnapshot`."""
    for part in parts(list(feeds), _FEEDS_PER_SNAPSHOT):
        snapshot = RetentionSnapshot(connection, store, stores, part, now, runs, only_kept=only_kept)
        yield from map(snapshot.plan, part)


class RetentionPlanner:
    """Plans feeds of a cluster in the given order, each from a snapshot that is at most some seconds old."""

    def __init__(
        self,
        ledger: Ledger,
        store: EntityStore,
        stores: StoresOf,
        feeds: Sequence[Feed],
        clock: Callable[[], datetime],
        *,
        only_kept: bool = False,
    ) -> None:
        self._ledger, self._store, self._stores, self._clock = ledger, store, stores, clock
        self._only_kept = only_kept
        self._feeds = {feed.name: feed for feed in feeds}
        self._snapshot: RetentionSnapshot | None = None
        self._until = 0.0

    def plan(self, name: str) -> FeedPlan:
        feed = self._feeds[name]
        if self._snapshot is None or name not in self._snapshot.feeds or time.monotonic() > self._until:
            self._snapshot = None  # where it fails, the next feed tries again
            self._snapshot, self._until = self._snapshot_from(name), time.monotonic() + _FRESH_SECONDS
        return self._snapshot.plan(feed)

    def _snapshot_from(self, name: str) -> RetentionSnapshot:
        following = list(self._feeds)[list(self._feeds).index(name) :][:_FEEDS_PER_SNAPSHOT]
        feeds = [self._feeds[one] for one in following]
        self._ledger.catch_up()
        now, runs = self._clock(), unfinished_runs(self._ledger.instance)
        with self._ledger.engine.begin() as connection:
            what = (connection, self._store, self._stores, feeds, now, runs)
            return RetentionSnapshot(*what, only_kept=self._only_kept)
