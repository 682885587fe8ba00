"""One pass of retention over feeds: decide, write down, remove, record; the next pass completes a killed one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import FalconError
from falcon_assets.ledger import evictions
from falcon_assets.ledger.evictions import Eviction
from falcon_assets.ledger.locks import try_lock, unlock
from falcon_assets.ledger.status import Status
from falcon_assets.ledger.upsert import parts
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.orchestration import event_metadata as meta
from falcon_assets.orchestration import names
from falcon_assets.orchestration.open_ledger import Ledger
from falcon_assets.orchestration.partitions import key_of
from falcon_assets.orchestration.process_assets import ProcessAssets
from falcon_assets.orchestration.retention_plan import FeedPlan, plan_retention
from falcon_assets.planning.eviction import Verdict
from falcon_assets.planning.paths import InstancePaths
from falcon_assets.settings import Settings
from falcon_assets.storage.availability import is_available
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.evicting import evict, measure
from falcon_assets.storage.rename_removal import READERS_SECONDS, purge

_AT_ONCE = 100
"""So many instances are removed before they are written down as done."""
_POLL_SECONDS = 1.0


@dataclass(frozen=True)
class Passed:
    """What a pass did.

    Attributes:
        instances: How many instances went.
        bytes: How much that was when it was decided.
        problems: What could not be looked at or removed, and why; the next pass tries again.
    """

    instances: int
    bytes: int
    problems: tuple[str, ...]


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
    _assets: ProcessAssets = field(init=False)

    def __post_init__(self) -> None:
        """Prepares what says how assets are partitioned."""
        object.__setattr__(self, "_assets", ProcessAssets(self.store, self.settings))

    def run(self, ledger: Ledger, run_id: str, record: Callable[[dg.AssetObservation], None]) -> Passed:
        """Goes over the feeds, one after the other; a feed with a problem delays no other.

        Every decision is committed before anything of it is touched, and is done only after the event is recorded:
        where a pass is killed, the next one finds the decision, removes what is left and records it. Passes over the
        same cluster wait for each other.

        Args:
            ledger: Is brought up to date before each feed.
            run_id: The run of this pass.
            record: Takes an event for each instance that went.
        """
        instances, size, problems = 0, 0, list[str]()
        with self._alone(ledger):
            for feed in self.feeds:
                try:
                    for one, error in self._evicted(ledger, feed, run_id, record):
                        if error is None:
                            instances, size = instances + 1, size + one.bytes
                        else:
                            problems.append(f"{feed.name} {format_instant(one.instance)}: {error}")
                except FalconError as refusal:
                    problems.append(f"{feed.name}: {refusal}")
        purge(self._files, self.patience)
        return Passed(instances, size, tuple(problems))

    def _evicted(
        self, ledger: Ledger, feed: Feed, run_id: str, record: Callable[[dg.AssetObservation], None]
    ) -> Iterator[tuple[Eviction, FalconError | None]]:
        ledger.catch_up()
        now = self.settings.now()
        with ledger.engine.begin() as connection:
            (plan,) = plan_retention(connection, self.store, self.cluster, [feed], self.settings, now)
            if plan.status.status is not Status.RUNNING:
                return
            if plan.problem:
                raise FalconError(plan.problem)
            before = evictions.undone(connection, self.cluster.name, [feed.name])
        kept = {one.instance for one in before if self._is_whole_and_stays(one, plan)}
        begun = [one for one in before if one.instance not in kept]
        known = {one.instance for one in begun}
        new = [
            self._decided(feed, verdict, run_id)
            for verdict in plan.verdicts
            if verdict.action != "keep" and verdict.instance.nominal not in known
        ]
        with ledger.engine.begin() as connection:
            evictions.withdraw(connection, self.cluster.name, feed.name, kept)
            evictions.write_down(connection, new)
        for part in parts([*begun, *new], _AT_ONCE):
            gone = []
            for one, error in self._removed(part):
                if error is None:
                    record(self._event(feed, one))
                    gone.append(one.instance)
                yield one, error
            with ledger.engine.begin() as connection:
                evictions.finish(connection, self.cluster.name, feed.name, gone, self.settings.now())

    def _is_whole_and_stays(self, one: Eviction, plan: FeedPlan) -> bool:
        """Whether nothing was done yet of a decision by a killed pass, and something needs the instance since."""
        stays = any(verdict.action == "keep" and verdict.instance == one.verdict.instance for verdict in plan.verdicts)
        if not stays or one.flag != plan.feed.availability_flag or not (one.flag or self._files.is_local):
            return False  # without a flag a store without rename does not tell a whole instance from a part of one
        return is_available(self._files, plan.feed, InstancePaths(plan.feed, self.cluster).data(one.instance))

    def _decided(self, feed: Feed, verdict: Verdict, run_id: str) -> Eviction:
        entry = feed.on(self.cluster.name)
        archive_cluster = entry.retention.archive_cluster if entry and entry.retention else None
        flag = feed.availability_flag
        files, size = measure(self._files, verdict.instance, flag)
        now = self.settings.now()
        return Eviction(self.cluster.name, feed.name, verdict, flag, archive_cluster, files, size, run_id, now)

    def _removed(self, decided: Sequence[Eviction]) -> Iterator[tuple[Eviction, FalconError | None]]:
        """Removes instances, each as it is asked for; why not, where something of one is still there."""
        for (flag, archive_cluster), alike in groupby(decided, lambda one: (one.flag, one.archive_cluster)):
            ours = list(alike)
            archive = self._archive(archive_cluster) if archive_cluster else None
            removed = evict(self._files, (one.verdict for one in ours), flag, archive)
            for one, found in zip(ours, removed, strict=True):
                yield one, found.error

    def _archive(self, cluster: str) -> ClusterStore:
        return ClusterStore(self.store.cluster(cluster), self.settings.home, self.settings.environ)

    def _event(self, feed: Feed, one: Eviction) -> dg.AssetObservation:
        """On the asset's partition; where several process instances write the instance, on that of the last one."""
        asset = self._assets.feed_asset(feed, self.cluster)
        partition = max(asset.partitions_of(one.instance), default=one.instance)
        verdict = one.verdict
        done = f"archived to {verdict.archive_to}" if verdict.archive_to else "deleted"
        at = self.settings.now()
        return dg.AssetObservation(
            asset_key=names.asset_key(self.cluster.name, feed.name),
            partition=key_of(asset.partitions, partition),
            description=f"{feed.name} {format_instant(one.instance)} was evicted ({done}): {verdict.reason}",
            metadata={
                meta.INSTANCE: format_instant(one.instance),
                meta.EVICTED: verdict.action,
                meta.REASON: verdict.reason,
                "bytes": one.bytes,
                "files": one.files,
                meta.AT: at.isoformat(timespec="milliseconds"),
                **({"archived_to": verdict.archive_to} if verdict.archive_to else {}),
                **({"archive_cluster": one.archive_cluster} if one.archive_cluster else {}),
            },
        )

    @cached_property
    def _files(self) -> ClusterStore:
        return ClusterStore(self.cluster, self.settings.home, self.settings.environ)

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
