"""Disks of clusters that may be no fuller than their ``max_usage``, and the passes that make room on them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property

from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.status import Status
from falcon_assets.errors import FalconError
from falcon_assets.features.retention.passes import PassResult, RetentionPass, alone
from falcon_assets.features.retention.plan import FeedPlan, RetentionPlanner
from falcon_assets.features.retention.room import MadeRoom, make_room
from falcon_assets.history.dagster_internals.events import Record
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.operations.data_roots import roots_of
from falcon_assets.planning.eviction import Space
from falcon_assets.settings import Settings
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.feed_store import StoresOf, cluster_store
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.storage_kind import READERS_SECONDS


@dataclass(frozen=True)
class Disk:
    """The disk of a cluster, or of one of its volumes by number, if that declares how full it may be."""

    store: EntityStore
    cluster: Cluster
    settings: Settings
    volume: int = 0

    @cached_property
    def files(self) -> ClusterStore:
        where = (self.cluster, self.settings.home, self.settings.environ)
        return cluster_store(*where, roots=roots_of(self.settings)).volumes[self.volume]

    def space(self) -> Space | None:
        """Measures it; None: it is not measured, or not there."""
        if self.cluster.interfaces.write.max_percent is None:
            return None
        try:
            return self.files.files.space(self.files.path(""))
        except (FalconError, OSError):
            return None

    def excess(self) -> int:
        """Returns how many bytes are to go."""
        space, limit = self.space(), self.cluster.interfaces.write.max_percent
        return space.excess(limit) if space and limit else 0

    @property
    def name(self) -> str:
        return f"the disk of {self.files.shown('')}" if self.cluster.interfaces.write.endpoints else "the disk"

    def reason(self) -> str:
        space = self.space()
        how_full = f"{space.percent}% full" if space else "too full"
        return f"{self.name} is {how_full}, more than {self.cluster.interfaces.write.max_usage} (max_usage)"

    def feeds(self) -> dict[str, list[Feed]]:
        """Returns by cluster the feeds that may have something there: all of its own, and those archived there."""
        here, found = self.cluster.name, dict[str, list[Feed]]()
        for feed in self.store.feeds.values():
            for entry in feed.clusters:
                there = entry.name == here or (entry.retention and entry.retention.archive_cluster == here)
                if there and self.store.includes(entry.name, feed.name):
                    found.setdefault(entry.name, []).append(feed)
        return found

    def plans(self, ledger: Ledger) -> list[FeedPlan]:
        """Returns plans of versions and archives only."""
        found, settings = list[FeedPlan](), self.settings
        for name, feeds in sorted(self.feeds().items()):
            stores = StoresOf(self.store.cluster(name), settings.home, settings.environ, roots_of(settings))
            planner = RetentionPlanner(ledger, self.store, stores, feeds, settings.now, only_kept=True)
            found += [planner.plan(feed.name) for feed in feeds]
        return found

    def with_room(self, plans: Sequence[FeedPlan]) -> MadeRoom:
        kind = kind_of(self.files)
        what = (kind.kept_aside(), self.excess(), self.reason(), kind.measure_aside, self._lies)
        return make_room(plans, self.cluster.name, *what)

    def _lies(self, path: str) -> bool:
        return bool(path) and bool(self.files.fs.lexists(self.files.path(path)))


def disks_of(store: EntityStore, cluster: Cluster, settings: Settings) -> list[Disk]:
    return [Disk(store, cluster, settings, number) for number in range(len(cluster.interfaces.write.volumes))]


@dataclass(frozen=True)
class RoomPass:
    """Makes room on the disk of a cluster; readers may list what goes for ``patience`` (real) seconds."""

    disk: Disk
    patience: float = READERS_SECONDS

    def run(self, ledger: Ledger, record: Record) -> PassResult:
        """Removes what is to go, and records it as other passes do; nothing, where the disk is no fuller than allowed.

        Passes over the clusters whose feeds have archives there wait for it.
        """
        disk, gone, problems = self.disk, dict.fromkeys(("copy", "version", "archive"), 0), list[str]()
        by_cluster = {
            name: RetentionPass(disk.store, disk.store.cluster(name), feeds, disk.settings, self.patience)
            for name, feeds in disk.feeds().items()
        }
        with ExitStack() as held:
            for name in sorted({*by_cluster, disk.cluster.name}):
                held.enter_context(alone(ledger, name))
            if not disk.excess():
                return PassResult(0, 0, ())
            plans, aside = disk.with_room(disk.plans(ledger))
            kind = kind_of(disk.files)
            for place in aside:
                kind.discard_aside(place)
            for plan in plans:
                if plan.status.status is not Status.RUNNING or plan.problem:
                    continue
                for what, of, error in by_cluster[plan.cluster.name].others(ledger, plan, record):
                    if error is None:
                        gone[what] += 1
                    else:
                        problems.append(f"{plan.feed.name} {of}: {error}")
            before = disk.space()
            kind.purge(self.patience)
            after = disk.space()
        freed = max(before.used - after.used, 0) if before and after else 0
        return PassResult(0, freed, tuple(problems), 0, gone["version"], gone["archive"], len(aside))
