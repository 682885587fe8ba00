"""Compactions of instances: each is read, written once more, verified, and published in place of what was read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from falcon_assets.compute.executor import InProcessExecutor
from falcon_assets.errors import MissingInputsError
from falcon_assets.features.compaction.readers import InstanceReaders
from falcon_assets.history.events.event_log import materialization, observation
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable, KeptVersion, RowsKept
from falcon_assets.history.events.inputs import Consumption
from falcon_assets.history.events.process_instances import InstanceChanged, WorkDone
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.instances.runs.environment import run_environment
from falcon_assets.instances.runs.instance_claims import InstanceClaims
from falcon_assets.instances.runs.instance_work import Done, Event, Prepared
from falcon_assets.instances.runs.kept_versions import kept_versions
from falcon_assets.instances.runs.planned_inputs import Evicted
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.compactions import COMPACTED, CompactionWorkload
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.instance_record import InstanceState, LateChange
from falcon_assets.settings import os_user
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.snapshots import is_there_repaired

if TYPE_CHECKING:
    from falcon_assets.features.compaction.replacing import CompactedInstance


@dataclass(frozen=True)
class CompactionWork:
    """Compacts instances of a feed on a cluster in one run.

    Attributes:
        version: Of the definition of the feed; None: none is recorded.
        partition: Returns the key of the partition of an instance.
        clock: The falcon clock, where the feed lands from outside; None: it does not.
    """

    compaction: CompactionWorkload
    cluster: Cluster
    store: ClusterStore
    readers: InstanceReaders
    claims: InstanceClaims
    now: Callable[[], datetime]
    partition: Callable[[datetime], str]
    version: int | None
    clock: Clock | None

    @property
    def feed(self) -> Feed:
        return self.compaction.entity

    @property
    def executor(self) -> InProcessExecutor:
        return InProcessExecutor(self.cluster)

    def prepare(self, nominal: datetime, late: tuple[LateChange, ...] | None, evicted: Evicted) -> Prepared:
        if not self.is_there(nominal, self.feed.name, nominal):
            line = f"{self.feed.name} {format_instant(nominal)} at {self.store.shown(self.path(nominal))}"
            gone = evicted(self.feed.name, [nominal]).get(nominal)
            if gone is not None:
                raise MissingInputsError(self.subject(nominal), [], [f"{line}, evicted on {format_instant(gone)}"])
            raise MissingInputsError(self.subject(nominal), [line], lacking=[(self.feed.name, nominal)])
        return _Compaction(self, nominal, late or ())

    def definition(self, nominal: datetime) -> int | None:
        return self.version

    def is_there(self, nominal: datetime, feed: str, instance: datetime) -> bool:
        return is_there_repaired(kind_of(self.store), self.feed, instance, self.path(instance), self.clock)

    def path(self, instance: datetime) -> str:
        return InstancePaths(self.feed, self.cluster).data(instance)

    def subject(self, nominal: datetime) -> str:
        return f"{self.compaction.name} on {self.cluster.name} at {format_instant(nominal)}"


@dataclass(frozen=True)
class _Compaction:
    work: CompactionWork
    nominal: datetime
    late: tuple[LateChange, ...]

    def run(self) -> Done:
        from falcon_assets.features.compaction.replacing import compact_instance  # noqa: PLC0415 - loads numpy, pyarrow

        started, work = time.monotonic(), self.work
        done = compact_instance(
            work.store, work.feed, self.nominal, work.subject(self.nominal), before=self._before_publication
        )
        seconds = time.monotonic() - started
        kept = kept_versions(work.store, work.feed, self.nominal) if done.new else None
        return _Compacted(work, self.nominal, done, seconds, self.late, kept)

    def _before_publication(self, read: DataVersion, new: str | None) -> None:
        """Waits for who is reading; says what will be there, so that whoever sees it first knows that no row is new."""
        work, cluster = self.work, self.work.cluster.name
        work.readers.wait_for_none(self.nominal)
        if new is None:
            return
        kept = RowsKept(cluster, work.feed.name, self.nominal, new, read.version, work.now())
        key = names.asset_key(cluster, work.feed.name)
        said = f"{work.compaction.name} {format_instant(self.nominal)} is about to be published"
        event = observation(key, work.partition(self.nominal), kept, description=said)
        work.claims.ledger.instance.report_runless_asset_event(event)


@dataclass(frozen=True)
class _Compacted:
    work: CompactionWork
    nominal: datetime
    done: CompactedInstance
    seconds: float
    late: tuple[LateChange, ...]
    kept: tuple[KeptVersion, ...] | None

    def events(self, partition: str, at: datetime, definition: int | None) -> Iterator[Event]:
        work, cluster, feed = self.work, self.work.cluster.name, self.work.feed.name
        name = work.compaction.name
        path = f"{work.store.root or ''}{work.path(self.nominal)}"
        inputs = {COMPACTED: (Consumption(feed, self.nominal, self.done.read.version, path=path),)}
        instance = (name, cluster, self.nominal)
        succeeded = InstanceChanged(
            *instance, InstanceState.SUCCEEDED, at, inputs=inputs, late=self.late, definition=definition
        )
        key, took = names.workload_keys(work.compaction)[0], WorkDone(round(self.seconds, 3))
        what = f"{name} {format_instant(self.nominal)}"
        new, written = self.done.new, self.done.files
        if new is None or written is None:
            yield materialization(key, partition, succeeded, took, description=f"{what}: there was nothing to gain")
            return
        available = FeedInstanceAvailable(
            cluster,
            feed,
            self.nominal,
            new.version,
            at,
            new.bytes,
            written.content.rows,
            new.files,
            process=name,
            nominal=self.nominal,
            inputs=inputs,
            path=work.store.shown(work.path(self.nominal)),
            definition=definition,
            kept_versions=self.kept,
            signature=self.done.signature,
            same_rows_as=self.done.read.version,
            made_by=os_user(),
            environment=run_environment(),
        )
        files = f"{written.files_before} files became {len(written.files)}"
        said = f"{what}: {files}, with the same {written.content.rows} rows ({written.content})"
        yield materialization(names.asset_key(cluster, feed), partition, available, description=said)
        yield materialization(key, partition, succeeded, took, description=said)
