"""A pass of retention over feeds: decide, write down, remove, record; the next completes a pass that was killed."""

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
from falcon_assets.features.retention.copies import CopyVerdict, abandon_copies, remove_copies
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
from falcon_assets.storage.eviction.evicting import evict, is_untouched, measure
from falcon_assets.storage.eviction.versions import evict_versions
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.storage_kind import READERS_SECONDS

_AT_ONCE = 100
"""So many instances are removed before they are written down as done."""
_POLL_SECONDS = 1.0


@dataclass(frozen=True)
class Passed:
    """What a pass did.

    Attributes:
        instances: How many instances went.
        bytes: How much that was when it was decided.
        problems: What could not be read or removed, and why; the next pass tries again.
        copies: Of how many instances that never came it removed what replications had staged.
        versions: How many versions that were replaced went.
    """

    instances: int
    bytes: int
    problems: tuple[str, ...]
    copies: int = 0
    versions: int = 0


@dataclass(frozen=True)
class RetentionPass:
    """Evicts what the retention of some feeds on a cluster lets go; only of those that are RUNNING.

    Attributes:
        store: The entities.
        cluster: The cluster.
        feeds: The feeds; each declares retention there.
        settings: The clock, and where everything lies.
        patience: For how many seconds (real time) readers may still list what was evicted from a file system.
    """

    store: EntityStore
    cluster: Cluster
    feeds: Sequence[Feed]
    settings: Settings
    patience: float = READERS_SECONDS

    def run(self, ledger: Ledger, run_id: str, record: Record) -> Passed:
        """Goes over the feeds, one after the other; a feed with a problem delays no other.

        Every decision is committed before anything of it is touched, and is done only after the event is recorded:
        where a pass is killed, the next finds the decision. What is begun of it is completed, whatever became of
        the feed; of the rest is decided anew. Passes over the same cluster wait for each other.

        Args:
            ledger: Is brought up to date before each snapshot.
            run_id: The run of this pass.
            record: Takes an event for each instance that went.
        """
        instances, size, others, problems = 0, 0, Counter[str](), list[str]()
        feeds = [*self.feeds, *self._with_versions_left(ledger)]
        planner = RetentionPlanner(ledger, self.store, self._stores.of_declared, feeds, self.settings.now)
        ours = {feed.name for feed in feeds}
        with self._alone(ledger):
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
                    for kind, what, error in self._others(ledger, plan, record) if plan else ():
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
                kind_of(files).purge(self.patience)
        return Passed(instances, size, tuple(problems), others["copy"], others["version"])

    def has_leftovers(self, ledger: Ledger) -> bool:
        """Whether there is work although no feed declares any.

        A pass was killed before it had removed or withdrawn all that it decided on, or freed its space; or a feed that
        has kept versions and declares none any more has some left.
        """
        with ledger.engine.connect() as connection:
            decided = evictions.undone_feeds(connection, self.cluster.name)
        if decided or self._with_versions_left(ledger):
            return True
        return not all(map(_is_purged, self._stores.all()))

    def _with_versions_left(self, ledger: Ledger) -> list[Feed]:
        """The feeds that kept versions, declare nothing any more that a pass would be for, and have some left."""
        here = self.cluster.name
        idle = {name: one for name, one in self.store.feeds.items() if one.on(here) and cadence(one, here) is None}
        with ledger.engine.begin() as connection:
            found = [idle[name] for name in sorted(known_versions(connection, here, idle))]
            running = statuses(connection, found, self.settings.now())
        return [one for one in found if running[one.kind, one.name].status is Status.RUNNING]

    def _left_behind(self, ledger: Ledger) -> list[str]:
        """The feeds that a killed pass was evicting, and that no pass over this cluster covers any more."""
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

    def _others(self, ledger: Ledger, plan: FeedPlan, record: Record) -> Iterator[tuple[str, str, FalconError | None]]:
        """What goes beside instances: copies and versions, of which instance, and why not where one is still there."""
        for copy, error in self._copies(ledger, plan):
            yield "copy", format_instant(copy.verdict.instance.nominal), error
        for version, error in self._versions(plan, record):
            kept = version.kept
            yield "version", f"{format_instant(kept.nominal)} version {kept.version}", error

    def _copies(self, ledger: Ledger, plan: FeedPlan) -> Iterator[tuple[CopyVerdict, FalconError | None]]:
        replications = self.store.replications_to(plan.feed.name, self.cluster.name)
        return remove_copies(ledger, replications, plan.feed, self._stores.of(plan.feed.name), plan.copies)

    def _versions(self, plan: FeedPlan, record: Record) -> Iterator[tuple[VersionVerdict, FalconError | None]]:
        """Removes versions, and records that they went.

        One that a killed pass had removed and not recorded is planned again, as one that is not there any more.
        """
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
        """The decisions; and those that cannot be made, because an instance cannot be measured."""
        decided, refused = list[Eviction](), list[tuple[Eviction, FalconError]]()
        feed = next((one for one in self.feeds if one.name == name), None)
        entry = feed.on(self.cluster.name) if feed else None
        archive_cluster = entry.retention.archive_cluster if entry and entry.retention else None
        flag, now = feed.availability_flag if feed else None, self.settings.now()
        files = self._stores.of(name)
        for verdict in verdicts:
            one = Eviction(self.cluster.name, name, verdict, flag, archive_cluster, 0, 0, run_id, now)
            try:
                count, size = measure(files, verdict.instance, flag)
            except FalconError as error:
                refused.append((one, error))
            else:
                decided.append(replace(one, files=count, bytes=size))
        return decided, refused

    def _done(
        self, ledger: Ledger, feed: str, decided: Sequence[Eviction], record: Record
    ) -> Iterator[tuple[Eviction, FalconError | None]]:
        """Removes instances, records that they went, and says so in the decisions; why not, where something is left."""
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
    def _alone(self, ledger: Ledger) -> Iterator[None]:
        name = f"falcon retention {self.cluster.name}"
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
