"""The import of files as they are: copied from a file server, verified, and published."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from fsspec import AbstractFileSystem

from falcon_assets.base.cancellation import current_cancellation
from falcon_assets.compute.executor import Executor
from falcon_assets.compute.spark.copying import copy_instance
from falcon_assets.errors import UnreachableError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import datasource_types
from falcon_assets.features.transfers.records import Transferred
from falcon_assets.history.events.event_log import materialization
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable, KeptVersion
from falcon_assets.history.events.process_instances import FilesCopied, InstanceChanged, WorkDone
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.instances.runs.environment import run_environment
from falcon_assets.instances.runs.instance_claims import InstanceClaims
from falcon_assets.instances.runs.instance_work import Done, Event, Prepared
from falcon_assets.instances.runs.kept_versions import kept_versions
from falcon_assets.instances.runs.planned_inputs import Evicted
from falcon_assets.instances.store.former_instances import FormerInstances
from falcon_assets.model.instant import format_instant
from falcon_assets.model.path_template import PathTemplate
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.instance_record import InstanceState, LateChange
from falcon_assets.planning.replication import ReplicationOptions
from falcon_assets.planning.transfers import ImportWorkload
from falcon_assets.settings import os_user
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_plan import ListedFile
from falcon_assets.storage.copying.copy_target import publish_if_complete
from falcon_assets.storage.copying.file_copy import MEBIBYTE
from falcon_assets.storage.copying.instance_copy import CopyResult, InstanceCopy
from falcon_assets.storage.copying.listed_files import SourceFiles
from falcon_assets.storage.files.file_access import FileAccess
from falcon_assets.storage.files.files_on import files_on
from falcon_assets.storage.files.remote_files import entry_version
from falcon_assets.storage.instances.data_files import is_data, is_hidden
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.output_target import OutputTarget, output_target

_PATTERN = frozenset("*?[")


class _Datasource(NamedTuple):
    name: str


@dataclass(frozen=True)
class _Server:
    """A file server, as copies know the store of a cluster."""

    cluster: _Datasource
    fs: AbstractFileSystem
    root: str

    @cached_property
    def files(self) -> FileAccess:
        return files_on(self.fs)


@dataclass(frozen=True)
class FilesOnServer:
    """The files at a path of a server: a folder, one file, or all that fit a pattern."""

    store: _Server

    def source_files(self, path: str, flag: str | None, left_out: Callable[[str], bool]) -> SourceFiles | None:
        """Names are relative to the folder, or to the last folder above a pattern; None: there is no file."""
        fs, place = self.store.fs, f"{self.store.root}/{path.strip('/')}"
        fs.invalidate_cache()
        if _PATTERN.isdisjoint(path):
            if not fs.exists(place):
                return None
            found = {} if fs.isfile(place) else fs.find(place, detail=True)
            base = place
            if not found and fs.isfile(place):
                base, _, name = place.rpartition("/")
                found = {place: fs.info(place)}
        else:
            steps = place.split("/")
            fixed = next(index for index, step in enumerate(steps) if _PATTERN.intersection(step))
            base, found = "/".join(steps[:fixed]), fs.glob(place, detail=True)
        files = {
            name: ListedFile(entry["size"], entry_version(entry))
            for path, entry in found.items()
            if entry["type"] == "file" and is_data(name := path[len(base) + 1 :], flag)
        }
        return SourceFiles(base, files) if files else None


@dataclass(frozen=True)
class FileImport:
    """Copies the files of instances in one run; ``version`` of the definition of the feed, None: none is recorded."""

    workload: ImportWorkload
    access: Access
    store: ClusterStore
    executor: Executor
    claims: InstanceClaims
    now: Callable[[], datetime]
    version: int | None

    @cached_property
    def source(self) -> FilesOnServer:
        fs, root = datasource_types()[self.access.type].file_system(self.access)
        return FilesOnServer(_Server(_Datasource(self.access.name), fs, root))

    def prepare(self, nominal: datetime, late: tuple[LateChange, ...] | None, evicted: Evicted) -> Prepared:
        if self.source.source_files(self.path(nominal), None, is_hidden) is None:
            raise UnreachableError(f"datasource {self.access.name!r}: there is no file at {self.path(nominal)} yet")
        self._former.require_apart(self.store, self.workload.entity, nominal, self.output(nominal).path)
        return _FilesOfInstance(self, nominal)

    @cached_property
    def _former(self) -> FormerInstances:
        return FormerInstances(self.claims.ledger)

    def definition(self, nominal: datetime) -> int | None:
        return self.version

    def is_there(self, nominal: datetime, feed: str, instance: datetime) -> bool:
        return True  # it reads no feed

    def path(self, nominal: datetime) -> str:
        paths = InstancePaths(self.workload.entity, self.store.cluster)
        template = PathTemplate.parse(self.workload.declared.source.path or "")
        return template.render(paths.wall(nominal), self.store.cluster.variables)

    def output(self, nominal: datetime) -> OutputTarget:
        feed = self.workload.entity
        return output_target(feed, nominal, InstancePaths(feed, self.store.cluster).data(nominal))

    @property
    def options(self) -> ReplicationOptions:
        throttle = self.access.throttle
        tasks = min(self.workload.declared.parallel, throttle.connections)
        shared = throttle.bytes_per_second and throttle.bytes_per_second / MEBIBYTE / self.workload.parallel
        return ReplicationOptions(max_maps=tasks, bandwidth=shared)


@dataclass(frozen=True)
class _FilesOfInstance:
    work: FileImport
    nominal: datetime

    def run(self) -> Done:
        work, path, output = self.work, self.work.path(self.nominal), self.work.output(self.nominal)
        target = kind_of(work.store).copy_target(output, work.access.name)
        with InstanceCopy(work.source, path, target, lambda _: True, work.options) as copy:
            result = copy_instance(work.executor, copy)
        current_cancellation().make_final()  # what is half published is published
        key = f"{work.workload.name} on {work.store.cluster.name} at {format_instant(self.nominal)}"
        version = publish_if_complete(key, [target])
        assert version is not None
        return _Imported(
            work, self.nominal, path, result, version, kept_versions(work.store, work.workload.entity, self.nominal)
        )


@dataclass(frozen=True)
class _Imported:
    work: FileImport
    nominal: datetime
    path: str
    result: CopyResult
    version: DataVersion
    kept: tuple[KeptVersion, ...] | None

    def events(self, partition: str, at: datetime, definition: int | None) -> Iterator[Event]:
        work, workload, result = self.work, self.work.workload, self.result
        instance = (workload.name, workload.cluster, self.nominal)
        succeeded = InstanceChanged(*instance, InstanceState.SUCCEEDED, at, inputs={}, definition=definition)
        copied = FilesCopied(
            work.access.name,
            result.files_copied,
            result.files_skipped,
            result.files_failed,
            result.bytes,
            result.verification or "nothing to verify",
        )
        available = FeedInstanceAvailable(
            workload.cluster,
            workload.entity.name,
            self.nominal,
            self.version.version,
            at,
            self.version.bytes,
            files=self.version.files,
            process=workload.name,
            nominal=self.nominal,
            inputs={},
            path=work.store.shown(work.output(self.nominal).path),
            definition=definition,
            kept_versions=self.kept,
            made_by=os_user(),
            environment=run_environment(),
        )
        told = Transferred(*instance, work.now(), "import", work.access.name, self.path)
        key, took = names.workload_keys(workload)[0], WorkDone(round(result.seconds, 3))
        said = f"{workload.name} {format_instant(self.nominal)}: {result.files_copied} files of {work.access.name}"
        yield materialization(key, partition, succeeded, available, told, copied, took, description=said)
