"""The copy of one source's part of one instance: planned, done by tasks, and finished; publishing comes after it."""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from falcon_assets.errors import StorageError
from falcon_assets.planning.replication.copy_plan import CopyPlan, ListedFile, plan_copy
from falcon_assets.planning.replication.options import ReplicationOptions
from falcon_assets.planning.replication.targets import Contribution
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_folders import CopyFolders
from falcon_assets.storage.copying.copy_records import true_records
from falcon_assets.storage.copying.copy_task import CopyJob, TaskSummary, run_task
from falcon_assets.storage.copying.file_copy import Attributes
from falcon_assets.storage.copying.file_marks import list_files
from falcon_assets.storage.errors import driver_explained
from falcon_assets.storage.files.path_lock import path_lock
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.publishing import OutputTarget

_LOCK_SECONDS = 3.0
_SHOWN_FAILURES = 5


@dataclass(frozen=True)
class CopyResult:
    """What a copy of one source's part did."""

    files_copied: int
    """Files that were copied and verified."""
    files_skipped: int
    """Files that were equal already, those included that an earlier attempt had copied."""
    files_failed: int
    """Files that could not be copied; only with ``ignoreErrors``."""
    bytes: int
    """Size of the copied files."""
    seconds: float
    """From the first listing to the last verification."""
    task_seconds: float
    """How long the tasks worked on files, one after the other; what ``mapBandwidth`` limits."""
    verification: str
    """How the copied files were verified, ``checksum``, ``etag`` or ``size``, most used first; "" for none."""
    to_publish: bool
    """Whether there is something to publish: false where the target's instance is the same already."""


class InstanceCopy:
    """One source's part of one target instance; a context in which nobody else copies the same.

    Args:
        source: The store of the source cluster, its ``readonly`` endpoint.
        path: The source's instance, below its root.
        target: The store of the target cluster.
        output: The target's instance.
        part: What this source brings.
        options: The feed's.

    Raises:
        StorageError: on entering: another run copies the same, or the stores refuse, or have nothing of what is to be
            preserved.
    """

    def __init__(
        self,
        source: ClusterStore,
        path: str,
        target: ClusterStore,
        output: OutputTarget,
        part: Contribution,
        options: ReplicationOptions,
    ) -> None:
        self._source, self._path, self._target, self._output = source, path, target, output
        self._part, self._options = part, options
        self._folders = CopyFolders(target, output.path, part.source)
        self._held = ExitStack()
        self._listed: dict[str, ListedFile] = {}
        self.plan = CopyPlan((), (), (), ())
        self.started = time.monotonic()

    plan: CopyPlan
    """What is to be done; known on entering."""
    started: float
    """When it was entered, on the monotonic clock."""

    def __enter__(self) -> InstanceCopy:
        with ExitStack() as held, driver_explained(self._target.cluster.name, f"copy {self._output.path}"):
            self._check_stores()
            if self._target.is_local:
                held.enter_context(part_lock(self._folders, self._where))
            kind_of(self._target).recover(self._where, self._output)
            self._folders.begin()
            self.started = time.monotonic()
            self._listed = self._source_files()
            self.plan = self._planned()
            for number, steps in enumerate(self.plan.tasks):
                self._folders.write_plan(number, steps)
            if not self._target.is_local and not self.plan.is_done:
                self._remove_flag()
            self._held = held.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._held.close()

    @property
    def job(self) -> CopyJob:
        """What the tasks need; there is one for each of ``plan.tasks``."""
        local = self._target.is_local
        published = self._target.path(self._output.path)
        options = self._options
        return CopyJob(
            source=self._source.fs,
            source_base=self._source.path(self._path),
            target=self._target.fs,
            target_base=published,
            written_base=self._folders.data if local else published,
            folder=self._folders.attempt,
            rate=options.map_bandwidth,
            by_size=options.skip_checksum,
            attributes=Attributes(
                options.preserve_permission, options.preserve_times, options.preserve_user, options.preserve_group
            ),
            to_the_end=options.ignore_errors,
        )

    def run_here(self) -> TaskSummary:
        """Does all tasks in this process.

        Raises:
            StorageError: the stores refuse; that a file could not be copied is in the summary.
        """
        with driver_explained(self._target.cluster.name, f"copy {self._output.path}"):
            job = self.job
            return TaskSummary.together([TaskSummary.of(run_task(job, one)) for one in range(len(self.plan.tasks))])

    def finish(self, done: TaskSummary) -> CopyResult:
        """Makes sure that every file came and that the source is still the same.

        Args:
            done: What all tasks of the plan did.

        Raises:
            StorageError: a file could not be copied and the options do not say that this is to be ignored, or the
                source changed meanwhile. What was copied is not copied again by the next attempt.
        """
        with driver_explained(self._target.cluster.name, f"copy {self._output.path}"):
            return self._finished(done)

    def _finished(self, done: TaskSummary) -> CopyResult:
        outcomes = Counter(done.outcomes)
        if done.failed and not self._options.ignore_errors:
            shown = "; ".join(f"{name or self._path}: {why}" for name, why in done.failed[:_SHOWN_FAILURES])
            raise StorageError(f"{self._where}: {len(done.failed)} file(s) could not be copied: {shown}")
        if outcomes.total() != sum(map(len, self.plan.tasks)):
            raise StorageError(f"{self._where}: its tasks ended early; the next attempt goes on with it")
        if self._source_files() != self._listed:
            raise StorageError(
                f"{self._where}: {self._path} on cluster {self._source.cluster.name!r} changed while it was copied; "
                "the next attempt copies what changed"
            )
        to_publish = self._changes(outcomes) or not is_published(self._target, self._output)
        if to_publish:
            rest = {*done.equal, *(name for name, _ in done.failed)}
            copied = [step.name for steps in self.plan.tasks for step in steps if step.name not in rest]
            self._folders.finish(copied, self.plan.delete)
        else:
            records = [*self._folders.published_records(), *self._folders.staged_records()]
            published = list_files(self._target, self._output.path, self._output.flag)
            self._folders.end(true_records(records, published).values())
        return CopyResult(
            files_copied=outcomes["copied"],
            files_skipped=len(self.plan.equal) + outcomes["equal"] + outcomes["resumed"],
            files_failed=len(done.failed),
            bytes=done.bytes,
            seconds=time.monotonic() - self.started,
            task_seconds=done.seconds,
            verification=", ".join(method for method, _ in Counter(done.verified).most_common()),
            to_publish=to_publish,
        )

    def _changes(self, outcomes: Counter[str]) -> bool:
        """Whether the target's instance is to be another one; on object stores it may be so already."""
        copied = outcomes["copied"] + outcomes["resumed"] if self._target.is_local else len(self.plan.tasks)
        return bool(copied or self.plan.delete)

    def _planned(self) -> CopyPlan:
        published = list_files(self._target, self._output.path, self._output.flag)
        records = self._folders.staged_records()
        recorded = true_records([*self._folders.published_records(), *records], published)
        staged = {}
        if self._target.is_local and records:
            staged = true_records(records, self._folders.staged_files())
        self._folders.keep_records([*true_records(records, published).values(), *staged.values()])
        at_once = self._target.cluster.interfaces.execute.tasks_at_once(os.cpu_count() or 1)
        return plan_copy(self._listed, published, recorded, staged, self._part.holds, self._options, at_once)

    def _source_files(self) -> dict[str, ListedFile]:
        path, flag = self._path, self._output.flag
        marker = self._source.path(f"{path}/{flag}" if flag else path)
        if not self._source.fs.exists(marker):
            raise StorageError(
                f"{self._where}: {path} on cluster {self._source.cluster.name!r} is not there, or not complete"
            )
        listed = list_files(self._source, path, flag)
        return {name: file for name, file in listed.items() if self._part.holds(name)}

    def _remove_flag(self) -> None:
        flag = self._target.path(f"{self._output.path}/{self._output.flag}")
        if self._target.fs.exists(flag):
            self._target.fs.rm_file(flag)

    def _check_stores(self) -> None:
        if not self._target.is_local and self._output.flag is None:
            raise StorageError(
                f"{self._where}: an object store publishes by setting the flag: declare availability_flag"
            )
        preserved = self._options.preserved
        if preserved and not (self._source.is_local and self._target.is_local):
            raise StorageError(f"{self._where}: object stores have nothing of {', '.join(preserved)}: remove it")

    @property
    def _where(self) -> str:
        return f"cluster {self._target.cluster.name!r}: cannot copy {self._output.path} from {self._part.source!r}"


def is_published(store: ClusterStore, output: OutputTarget) -> bool:
    """Whether there is a complete instance, by its flag, or by its path where it has none."""
    return bool(store.fs.exists(store.path(f"{output.path}/{output.flag}" if output.flag else output.path)))


def part_lock(folders: CopyFolders, where: str) -> ExitStack:
    """Holds the lock of one source's part, on a local store.

    Raises:
        StorageError: another run has it.
        OSError: the file system offers no locks.
    """
    Path(folders.folder).mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        if not held.enter_context(path_lock(Path(f"{folders.folder}.lock"), _LOCK_SECONDS)):
            raise StorageError(f"{where}: another run is copying it: let it end, or end it, and run this again")
        return held.pop_all()
