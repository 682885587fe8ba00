"""Makes room on a cluster's disk that is fuller than its ``max_usage``: the oldest goes of what is not present data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import NamedTuple, TypeVar

from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.status import Status
from falcon_assets.errors import FalconError
from falcon_assets.features.retention.archives import ArchiveVerdict
from falcon_assets.features.retention.passes import PassResult, RetentionPass, alone
from falcon_assets.features.retention.plan import FeedPlan, RetentionPlanner
from falcon_assets.history.dagster_internals.events import Record
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.operations.data_roots import roots_of
from falcon_assets.planning.eviction import Space, VersionVerdict, first_to_go
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.settings import Settings
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.feed_store import StoresOf
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.storage_kind import READERS_SECONDS

_Kept = TypeVar("_Kept", VersionVerdict, ArchiveVerdict)


class Candidate(NamedTuple):
    """Something that may go: a version or archive of the plan with that number, or (None) what is kept aside."""

    since: datetime
    plan: int | None
    what: VersionVerdict | ArchiveVerdict | str


class MadeRoom(NamedTuple):
    plans: list[FeedPlan]
    """As they were, with what goes; nothing of a feed that is not RUNNING."""
    aside: list[str]
    """What is kept aside, and goes."""


def make_room(
    plans: Sequence[FeedPlan],
    cluster: str,
    aside: Sequence[tuple[datetime, str]],
    excess: int,
    reason: str,
    measure: Callable[[str], int],
) -> MadeRoom:
    """Decides what goes from the disk of a cluster, the oldest first, until ``excess`` bytes have gone.

    What the plans let go by age or number counts first. Nothing that is protected goes, and no version of which the
    ledger does not know yet when it was replaced.
    """
    found = [Candidate(at, None, place) for at, place in aside]
    for number, plan in enumerate(plans):
        for one in _on_disk(plan, cluster):
            if one.goes:
                excess -= _size(one)
            elif (since := _since(one)) is not None:
                found.append(Candidate(since, number, one))

    def size(one: Candidate) -> int:
        return measure(one.what) if isinstance(one.what, str) else _size(one.what)

    going = first_to_go(found, excess, lambda one: one.since, size)
    chosen, changed = {id(one.what) for one in going}, list(plans)
    for at in {one.plan for one in going if one.plan is not None}:
        versions = tuple(_gone(one, reason) if id(one) in chosen else one for one in plans[at].versions)
        archives = tuple(_gone(one, reason) if id(one) in chosen else one for one in plans[at].archives)
        changed[at] = replace(plans[at], versions=versions, archives=archives)
    return MadeRoom(changed, [one.what for one in going if isinstance(one.what, str)])


def _gone(one: _Kept, reason: str) -> _Kept:
    return one._replace(goes=True, reason=reason)


def _on_disk(plan: FeedPlan, cluster: str) -> Iterator[VersionVerdict | ArchiveVerdict]:
    if plan.status.status is not Status.RUNNING or plan.problem:
        return
    here, feed = plan.cluster.name, plan.feed
    if here == cluster and feed.table_on(here) is None and InstancePaths(feed, plan.cluster).root is None:
        yield from plan.versions
    for one in plan.archives:
        if (one.archived.archive_cluster or here) == cluster and one.archived.verdict.archive_root is None:
            yield one


def _since(one: VersionVerdict | ArchiveVerdict) -> datetime | None:
    """When it stopped to be the present data; None: it stays."""
    if isinstance(one, VersionVerdict):
        return None if one.protected_by else one.replaced_at
    return None if one.kept_by else one.archived.decided_at


def _size(one: VersionVerdict | ArchiveVerdict) -> int:
    return one.bytes if isinstance(one, VersionVerdict) else one.archived.bytes


@dataclass(frozen=True)
class Disk:
    """The disk of a cluster, if that declares how full it may be."""

    store: EntityStore
    cluster: Cluster
    settings: Settings

    @cached_property
    def files(self) -> ClusterStore:
        return ClusterStore(self.cluster, self.settings.home, self.settings.environ, roots=roots_of(self.settings))

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

    def reason(self) -> str:
        space = self.space()
        how_full = f"{space.percent}% full" if space else "too full"
        return f"the disk is {how_full}, more than {self.cluster.interfaces.write.max_usage} (max_usage)"

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
        return make_room(plans, self.cluster.name, kind.kept_aside(), self.excess(), self.reason(), kind.measure_aside)


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
