"""A pass of retention over feeds: decide, record, remove, report; the next completes a pass that was killed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby

from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.status import Status, statuses
from falcon_assets.errors import FalconError, RootAwayError
from falcon_assets.features.retention import store as evictions
from falcon_assets.features.retention.archives import ArchiveVerdict, expire
from falcon_assets.features.retention.copies import abandon_copies, remove_copies
from falcon_assets.features.retention.events import EvictionEvents
from falcon_assets.features.retention.plan import FeedPlan, RetentionPlanner, RetentionStores, is_in_table
from falcon_assets.features.retention.store import Eviction
from falcon_assets.history.dagster_internals.events import Record
from falcon_assets.history.database import parts, try_lock, unlock
from falcon_assets.history.folding.kept_versions import known_versions
from falcon_assets.history.mapping.partitions import AssetPartitions
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.eviction import Verdict, VersionVerdict, cadence
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.settings import Settings
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.eviction.evicting import Removals, evict, evict_versions, is_untouched
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.storage_kind import READERS_SECONDS

_AT_ONCE = 100
"""Instances removed before they are recorded as done."""
_POLL_SECONDS = 1.0


@dataclass(frozen=True)
class PassResult:
    """The result of a pass; after ``problems`` the next pass tries again.

    Attributes:
        bytes: Measured at the decision.
        copies: Instances that never arrived, and whose staged data was removed.
        versions: Removed versions that had been replaced.
        archives: Instances removed from their archives.
        held: Removed outputs that were kept aside.
    """

    instances: int
    bytes: int
    problems: tuple[str, ...]
    copies: int = 0
    versions: int = 0
    archives: int = 0
    held: int = 0


@dataclass(frozen=True)
class RetentionPass:
    """Evicts instances of RUNNING feeds on a cluster; readers may list them for ``patience`` (real) seconds."""

    store: EntityStore
    cluster: Cluster
    feeds: Sequence[Feed]
    settings: Settings
    patience: float = READERS_SECONDS

    def run(self, ledger: Ledger, run_id: str, record: Record) -> PassResult:
        """Passes over the feeds, one after the other; a feed with a problem delays no other.

        Every decision is committed before the first change, and closed only after the event is recorded: after a kill
        the next pass finds the decision, completes it where it was begun, whatever the feed declares now, and decides
        anew where it was not. Passes over the same cluster wait for each other (lock). ``record`` receives the events.
        """
        instances, size, others, problems = 0, 0, Counter[str](), list[str]()
        feeds = [*self.feeds, *self._with_versions_left(ledger)]
        planner = RetentionPlanner(ledger, self.store, self._stores.of_declared, feeds, self.settings.now)
        ours = {feed.name for feed in feeds}
        with alone(ledger, self.cluster.name):
            for name in [*(feed.name for feed in feeds), *self._left_behind(ledger)]:
                try:
                    plan = planner.plan(name) if name in ours else None
                    if plan and plan.status.status is not Status.RUNNING:
                        plan = None
                    for one, error in self._evicted(ledger, name, plan, run_id, record):
                        if error is None:
                            instances, size = instances + 1, size + one.bytes
                        else:
                            problems.append(f"{name} {format_instant(one.instance)}: {error}")
                    for kind, what, error in self.others(ledger, plan, record) if plan else ():
                        if error is None:
                            others[kind] += 1
                        else:
                            problems.append(f"{name} {what}: {error}")
                    if plan and plan.problem:
                        problems.append(f"{name}: {plan.problem}")
                except FalconError as refusal:
                    problems.append(f"{name}: {refusal}")
        for files in self._stores.all():
            with suppress(RootAwayError):  # said of its feeds already
                problems += kind_of(files).away()
                kind_of(files).purge(self.patience)
        kinds = others["copy"], others["version"], others["archive"]
        return PassResult(instances, size, tuple(problems), *kinds)

    def has_leftovers(self, ledger: Ledger) -> bool:
        """Returns whether work is left though no feed declares any: of a killed pass, or of versions once declared."""
        with ledger.engine.connect() as connection:
            decided = evictions.undone_feeds(connection, self.cluster.name)
        if decided or self._with_versions_left(ledger):
            return True
        return not all(map(_is_purged, self._stores.all()))

    def _with_versions_left(self, ledger: Ledger) -> list[Feed]:
        """Returns RUNNING feeds with kept versions that no declared retention covers any more."""
        here = self.cluster.name
        there = {
            name: one for name, one in self.store.feeds.items() if one.on(here) and self.store.includes(here, name)
        }
        idle = {name: one for name, one in there.items() if cadence(one, here) is None}
        with ledger.engine.begin() as connection:
            found = [idle[name] for name in sorted(known_versions(connection, here, idle))]
            running = statuses(connection, found, self.settings.now())
        return [one for one in found if running[one.kind, one.name].status is Status.RUNNING]

    def _left_behind(self, ledger: Ledger) -> list[str]:
        """Returns feeds with open decisions of a killed pass that no pass over this cluster covers any more."""
        with ledger.engine.connect() as connection:
            names = evictions.undone_feeds(connection, self.cluster.name)
        ours, known = {feed.name for feed in self.feeds}, self.store.feeds
        kept = {name for name in names if name in known and cadence(known[name], self.cluster.name) is not None}
        return [name for name in names if name not in ours | kept]

    def _evicted(
        self, ledger: Ledger, feed: str, plan: FeedPlan | None, run_id: str, record: Record
    ) -> Iterator[tuple[Eviction, FalconError | None]]:
        with ledger.engine.connect() as connection:
            before = evictions.undone(connection, self.cluster.name, [feed])
        files = self._stores.of(feed)
        begun = [one for one in before if _is_begun(self._stores.where(one), one)]
        going = {one.instance for one in begun}
        verdicts = plan.verdicts if plan else ()
        wanted = [one for one in verdicts if one.action != "keep" and one.instance.nominal not in going]
        new, refused = self._decided(feed, wanted, run_id)
        open_again = [one for one in before if one.instance not in going]
        archive = partial(self._stores.archive, files)
        stuck = list(abandon_copies(open_again, [*begun, *new], self.store.clusters, archive))
        going.update(one.instance for one, _ in stuck)  # they stay as they are: the next pass tries again
        new = [one for one in new if one.instance not in going]
        going.update(one.instance for one in new)
        refused += stuck
        with ledger.engine.begin() as connection:
            dropped = [one.instance for one in open_again if one.instance not in going]
            evictions.withdraw(connection, self.cluster.name, feed, dropped)
            evictions.write_down(connection, new)
        if plan and plan.kept:
            record([self._events.kept(feed, plan.kept, self.settings.now())])
        yield from refused
        for part in parts([*begun, *new], _AT_ONCE):
            yield from self._done(ledger, feed, part, record)

    def others(self, ledger: Ledger, plan: FeedPlan, record: Record) -> Iterator[tuple[str, str, FalconError | None]]:
        """Removes what a plan lets go besides instances; gives of each its kind, what it is, and its error."""
        replications = self.store.replications_to(plan.feed.name, self.cluster.name)
        files = self._stores.of(plan.feed.name)
        for copy, error in remove_copies(ledger, replications, plan.feed, files, plan.copies):
            yield "copy", format_instant(copy.verdict.instance.nominal), error
        for version, error in self._versions(plan, record):
            kept = version.kept
            yield "version", f"{format_instant(kept.nominal)} version {kept.version}", error
        for archive, error in self._archives(ledger, plan, record):
            yield "archive", f"{format_instant(archive.archived.instance)} in its archive", error

    def _archives(
        self, ledger: Ledger, plan: FeedPlan, record: Record
    ) -> Iterator[tuple[ArchiveVerdict, FalconError | None]]:
        """As :meth:`_versions`."""
        files, feed = self._stores.of(plan.feed.name), plan.feed.name
        for part in parts([one for one in plan.archives if one.goes], _AT_ONCE):
            outcomes = list(expire(part, InstancePaths(plan.feed, self.cluster), partial(self._stores.archive, files)))
            gone, at = [one for one, error in outcomes if error is None], self.settings.now()
            with ledger.engine.connect() as connection:
                versions = [evictions.version_in_archive(connection, one.archived) for one in gone]
            if gone:
                record([self._events.archive(*one, at) for one in zip(gone, versions, strict=True)])
            with ledger.engine.begin() as connection:
                evictions.expired(connection, self.cluster.name, feed, [one.archived.instance for one in gone], at)
            yield from outcomes

    def _versions(self, plan: FeedPlan, record: Record) -> Iterator[tuple[VersionVerdict, FalconError | None]]:
        """Removes versions, then records it; after a kill in between they are planned again, as missing."""
        going = [one for one in plan.versions if one.goes]
        paths = InstancePaths(plan.feed, self.cluster)
        for part in parts(going, _AT_ONCE):
            outcomes = list(evict_versions(self._stores.of(plan.feed.name), paths, part))
            at = self.settings.now()
            if gone := [self._events.version(plan.feed.name, one, at) for one, error in outcomes if error is None]:
                record(gone)
            yield from outcomes

    def _decided(
        self, name: str, verdicts: Sequence[Verdict], run_id: str
    ) -> tuple[list[Eviction], list[tuple[Eviction, FalconError]]]:
        decided, refused = list[Eviction](), list[tuple[Eviction, FalconError]]()
        feed = next((one for one in self.feeds if one.name == name), None)
        entry = feed.on(self.cluster.name) if feed else None
        archive_cluster = entry.retention.archive_cluster if entry and entry.retention else None
        flag, now = feed.availability_flag if feed else None, self.settings.now()
        removals = Removals(self._stores.of(name), flag)
        for verdict in verdicts:
            one = Eviction(self.cluster.name, name, verdict, flag, archive_cluster, 0, 0, run_id, now)
            try:
                count, size = removals.measure(verdict.instance)
            except FalconError as error:
                refused.append((one, error))
            else:
                decided.append(replace(one, files=count, bytes=size))
        return decided, refused

    def _done(
        self, ledger: Ledger, feed: str, decided: Sequence[Eviction], record: Record
    ) -> Iterator[tuple[Eviction, FalconError | None]]:
        outcomes = list(self._removed(decided))
        gone = [one for one, error in outcomes if error is None]
        at = self.settings.now()
        if gone:
            record([self._events.event(one, at) for one in gone])
        with ledger.engine.begin() as connection:
            evictions.finish(connection, self.cluster.name, feed, [one.instance for one in gone], at)
        yield from outcomes

    def _removed(self, decided: Sequence[Eviction]) -> Iterator[tuple[Eviction, FalconError | None]]:
        for (flag, archive_cluster, _), alike in groupby(
            decided, lambda one: (one.flag, one.archive_cluster, is_in_table(one))
        ):
            ours = list(alike)
            try:
                files = self._stores.where(ours[0])
                archive = self._stores.archive(files, archive_cluster, None) if archive_cluster else None
            except FalconError as error:  # the cluster is no more
                yield from ((one, error) for one in ours)
                continue
            removed = evict(files, (one.verdict for one in ours), flag, archive)
            for one, found in zip(ours, removed, strict=True):
                yield one, found.error

    @cached_property
    def _stores(self) -> RetentionStores:
        return RetentionStores(self.store, self.cluster, self.settings)

    @cached_property
    def _events(self) -> EvictionEvents:
        return EvictionEvents(self.store.feeds, self.cluster.name, AssetPartitions(self.store))


@contextmanager
def alone(ledger: Ledger, cluster: str) -> Iterator[None]:
    """Waits until no other pass is over the cluster; who needs several asks for them by the order of their names."""
    name = f"falcon retention {cluster}"
    with ledger.engine.connect() as connection:
        # Asked for again and again: a statement that waits for a lock would keep a transaction open.
        while not try_lock(connection, name):
            connection.rollback()
            time.sleep(_POLL_SECONDS)
        connection.commit()
        try:
            yield
        finally:
            unlock(connection, name)


def _is_begun(files: ClusterStore, one: Eviction) -> bool:
    try:
        return not is_untouched(files, one.verdict.instance, one.flag)
    except FalconError:
        return True  # what is wrong there is said where it is to be removed


def _is_purged(files: ClusterStore) -> bool:
    try:
        return kind_of(files).is_purged()
    except RootAwayError:
        return True  # nothing can be done there
