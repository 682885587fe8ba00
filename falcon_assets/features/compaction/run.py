"""Compactions of instances: each is read, written once more, verified, and published in place of what was read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

from falcon_assets.base.cancellation import current_cancellation
from falcon_assets.compute.executor import InProcessExecutor
from falcon_assets.errors import MissingInputsError, StorageError
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
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.instance_record import InstanceState, LateChange
from falcon_assets.planning.workloads import COMPACTED, CompactionWorkload
from falcon_assets.settings import os_user
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.instances.data_files import is_hidden
from falcon_assets.storage.instances.data_version import DataVersion, version_of
from falcon_assets.storage.instances.publication import InstancePublication
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.snapshots import is_there_repaired
from falcon_assets.storage.kinds.storage_kind import StorageKind
from falcon_assets.storage.local_staging import LocalStaging
from falcon_assets.storage.output_target import OutputTarget, output_target

if TYPE_CHECKING:
    from falcon_assets.features.compaction.engine import CompactedFiles, CompactionPlan, NewFiles
    from falcon_assets.features.compaction.row_files import DataFile

_OUTPUT = "compacted"
_LOCAL = "file://"


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

    def output(self, instance: datetime, replaces: str) -> OutputTarget:
        declared, table = self.feed.compact, self.feed.table_on(self.cluster.name)
        output = replace(output_target(self.feed, instance, self.path(instance)), replaces=replaces)
        if declared and declared.replaces:
            output = replace(output, keeps=None)
        return replace(output, format=self.feed.format) if table else output


@dataclass(frozen=True)
class _Compaction:
    work: CompactionWork
    nominal: datetime
    late: tuple[LateChange, ...]

    def run(self) -> Done:
        started, work, feed, path = time.monotonic(), self.work, self.work.feed, self.work.path(self.nominal)
        kind, flag = kind_of(work.store), feed.availability_flag
        # Before the first look at its files; at the end it must still be the same.
        signature = kind.listing(path, flag).signature
        staging = LocalStaging.of(work.store)
        output = work.output(self.nominal, signature)
        with kind.publish(work.subject(self.nominal), {_OUTPUT: output}, staging) as publication:
            read = kind.version(path, flag)
            with staging.folder() as spill:
                done = self._written(kind, path, publication, spill)
            if done is None:
                return _Compacted(work, self.nominal, read, None, None, time.monotonic() - started, self.late)
            work.readers.wait_for_none(self.nominal)
            if kind.listing(path, flag).signature != signature:
                raise StorageError(f"{work.subject(self.nominal)}: {path} was written meanwhile: nothing is published")
            if (version := _version_to_be(work.store, publication)) is not None:
                self._announce(read, version)
            current_cancellation().make_final()  # what is half published is published
            new = publication.commit(_OUTPUT)
        seconds = time.monotonic() - started
        kept = kept_versions(work.store, feed, self.nominal)
        signature = kind.listing(path, flag).signature
        there = {file.name for file in _files(kind, path, flag)}
        seen = signature if there == {*done.files} else None  # else somebody added to it: a collector has to look
        return _Compacted(work, self.nominal, read, new, done, seconds, self.late, kept, seen)

    def _written(
        self, kind: StorageKind, path: str, publication: InstancePublication, spill: Path
    ) -> CompactedFiles | None:
        """None: there is nothing to gain."""
        from falcon_assets.features.compaction.engine import compact  # noqa: PLC0415 - loads numpy and pyarrow

        files = list(_files(kind, path, self.work.feed.availability_flag))
        filled = [one for one in files if one.size]
        folders = {one.folder for one in filled}
        plan = _plan(self.work.feed)
        if not filled or any(not one.name for one in filled) or (len(filled) == len(folders) and not plan.sort):
            return None
        return compact(files, plan, _new_files(self.work.store, publication), spill)

    def _announce(self, read: DataVersion, version: str) -> None:
        """Says what will be there, before it is: whoever sees it first knows that no row is new."""
        work, cluster = self.work, self.work.cluster.name
        kept = RowsKept(cluster, work.feed.name, self.nominal, version, read.version, work.now())
        key = names.asset_key(cluster, work.feed.name)
        said = f"{work.compaction.name} {format_instant(self.nominal)} is about to be published"
        work.claims.ledger.instance.report_runless_asset_event(
            observation(key, work.partition(self.nominal), kept, description=said)
        )


@dataclass(frozen=True)
class _Compacted:
    """A compacted instance; ``version`` None: it was left as it is."""

    work: CompactionWork
    nominal: datetime
    read: DataVersion
    version: DataVersion | None
    done: CompactedFiles | None
    seconds: float
    late: tuple[LateChange, ...]
    kept: tuple[KeptVersion, ...] | None = None
    signature: str | None = None

    def events(self, partition: str, at: datetime, definition: int | None) -> Iterator[Event]:
        work, cluster, feed = self.work, self.work.cluster.name, self.work.feed.name
        name = work.compaction.name
        path = f"{work.store.root or ''}{work.path(self.nominal)}"
        inputs = {COMPACTED: (Consumption(feed, self.nominal, self.read.version, path=path),)}
        instance = (name, cluster, self.nominal)
        succeeded = InstanceChanged(
            *instance, InstanceState.SUCCEEDED, at, inputs=inputs, late=self.late, definition=definition
        )
        key, done = names.workload_keys(work.compaction)[0], WorkDone(round(self.seconds, 3))
        what = f"{name} {format_instant(self.nominal)}"
        if self.version is None or self.done is None:
            yield materialization(key, partition, succeeded, done, description=f"{what}: there was nothing to gain")
            return
        available = FeedInstanceAvailable(
            cluster,
            feed,
            self.nominal,
            self.version.version,
            at,
            self.version.bytes,
            self.done.content.rows,
            self.version.files,
            process=name,
            nominal=self.nominal,
            inputs=inputs,
            path=work.store.shown(work.path(self.nominal)),
            definition=definition,
            kept_versions=self.kept,
            signature=self.signature,
            same_rows_as=self.read.version,
            made_by=os_user(),
            environment=run_environment(),
        )
        files = f"{self.done.files_before} files became {len(self.done.files)}"
        said = f"{what}: {files}, with the same {self.done.content.rows} rows ({self.done.content})"
        yield materialization(names.asset_key(cluster, feed), partition, available, description=said)
        yield materialization(key, partition, succeeded, done, description=said)


def _files(kind: StorageKind, path: str, flag: str | None) -> Iterator[DataFile]:
    from falcon_assets.features.compaction.row_files import DataFile  # noqa: PLC0415 - loads pyarrow

    found, fs = kind.source_files(path, flag, is_hidden), kind.store.fs
    if found is None:
        raise StorageError(f"there is nothing at {path} any more")
    for name, file in found.files.items():
        yield DataFile(name, file.size, partial(fs.open, found.path(name), "rb"))


def _plan(feed: Feed) -> CompactionPlan:
    from falcon_assets.features.compaction.engine import CompactionPlan  # noqa: PLC0415 - said above

    assert feed.compact is not None
    sort, size = feed.compact.sort, feed.compact.file_bytes
    return CompactionPlan(feed.format, sort, size, feed.options, feed.schema_, feed.partitions)


def _new_files(store: ClusterStore, publication: InstancePublication) -> NewFiles:
    from falcon_assets.features.compaction.engine import NewFiles  # noqa: PLC0415 - said above

    folder, is_local = publication.staging(_OUTPUT), publication.staging_url(_OUTPUT).startswith(_LOCAL)

    def create(name: str) -> AbstractContextManager[IO[bytes]]:
        place = f"{folder}/{name}"
        parent = place.rpartition("/")[0]
        if is_local:
            Path(parent).mkdir(parents=True, exist_ok=True)
            return Path(place).open("xb")
        store.fs.makedirs(parent, exist_ok=True)
        opened: AbstractContextManager[IO[bytes]] = store.fs.open(place, "wb")
        return opened

    def read(name: str) -> AbstractContextManager[IO[bytes]]:
        place = f"{folder}/{name}"
        if is_local:
            return Path(place).open("rb")
        opened: AbstractContextManager[IO[bytes]] = store.fs.open(place, "rb")
        return opened

    return NewFiles(create, read)


def _version_to_be(store: ClusterStore, publication: InstancePublication) -> str | None:
    """The version of what is staged, on file systems; None: only the store can tell, once it is there."""
    folder = Path(publication.staging(_OUTPUT))
    if kind_of(store).object_store is not None or not str(store.fs.unstrip_protocol("")).startswith(_LOCAL):
        return None
    contents = []
    for path in (one for one in folder.rglob("*") if one.is_file()):
        size, checksum = store.files.content(str(path), path.stat().st_size)
        contents.append((str(path.relative_to(folder)).encode(), size, bytes.fromhex(checksum)))
    return version_of(contents).version
