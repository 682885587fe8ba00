"""The copy of one source's part of one instance: planned, done by tasks, and finished; publishing follows."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from types import TracebackType

from falcon_assets.base.cancellation import current_cancellation
from falcon_assets.errors import StorageError
from falcon_assets.planning.replication import PRESERVED_BETWEEN, ReplicationOptions
from falcon_assets.storage.copying.copy_plan import CopyPlan, CopyRecord, ListedFile, plan_copy
from falcon_assets.storage.copying.copy_records import true_records
from falcon_assets.storage.copying.copy_target import CopyTarget, part_lock
from falcon_assets.storage.copying.copy_task import CopyJob, FileReport, TaskSummary, join, run_task
from falcon_assets.storage.copying.file_copy import Attributes
from falcon_assets.storage.copying.listed_files import CopySource, SourceFiles
from falcon_assets.storage.errors import driver_explained

_SHOWN_FAILURES = 5


@dataclass(frozen=True)
class CopyResult:
    files_copied: int
    files_skipped: int
    """Files that were equal already, including those that an earlier attempt had copied."""
    files_failed: int
    bytes: int
    seconds: float
    task_seconds: float
    """How long the tasks worked on files, one after the other; ``mapBandwidth`` limits this."""
    verification: str
    """``checksum``, ``etag`` or ``size``, most used first; "" if nothing was copied."""
    to_publish: bool
    """False if the target's instance is the same already."""


class InstanceCopy:
    """One source's part of one target instance; while the context lasts, no other run copies it.

    Entering raises StorageError also if something else is at the target and may not be replaced.
    """

    def __init__(
        self,
        source: CopySource,
        path: str,
        target: CopyTarget,
        holds: Callable[[str], bool],
        options: ReplicationOptions,
    ) -> None:
        self._source, self._path, self._target = source, path, target
        self._holds, self._options = holds, options
        self._held = ExitStack()
        self._found = SourceFiles("", {})
        self.plan = CopyPlan((), (), (), ())
        self.started = time.monotonic()

    plan: CopyPlan
    started: float

    def __enter__(self) -> InstanceCopy:
        with ExitStack() as held, self._explained():
            self._check_stores()
            held.enter_context(part_lock(self._target, self._where))
            self._target.recover(self._where)
            self._target.begin()
            self.started = time.monotonic()
            self._found = self._source_files()
            self.plan = self._planned()
            for number, steps in enumerate(self.plan.tasks):
                self._target.write_plan(number, steps)
            if not self.plan.is_done:
                self._target.hide()
            self._held = held.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._held.close()

    @property
    def job(self) -> CopyJob:
        source, target, options = self._source, self._target, self._options
        return CopyJob(
            source=source.store.fs,
            source_base=self._found.base,
            elsewhere=dict(self._found.elsewhere),
            target=target.fs,
            target_base=target.place,
            written_base=target.written,
            folder=target.attempt,
            file_copy=target.file_copy,
            record_log=target.record_log,
            requests=max(source.store.files.requests, target.store.files.requests),
            rate=options.rate(len(self.plan.tasks)),
            by_size=options.skip_checksum,
            attributes=Attributes(
                options.preserve_permission, options.preserve_times, options.preserve_user, options.preserve_group
            ),
            to_the_end=options.ignore_errors,
        )

    def run_here(self) -> TaskSummary:
        """Does all tasks in this process; a failed file is in the summary, a cancelled copy raises CancelledError."""
        with self._explained():
            job = self.job
            tasks = (_cancellable(run_task(job, one)) for one in range(len(self.plan.tasks)))
            return TaskSummary.together([TaskSummary.of(reports) for reports in tasks])

    def finish(self, done: TaskSummary) -> CopyResult:
        """Raises StorageError if a file failed or the source changed; the next attempt keeps what was copied."""
        with self._explained():
            return self._finished(done)

    def _finished(self, done: TaskSummary) -> CopyResult:
        outcomes = Counter(done.outcomes)
        if done.failed and not self._options.ignore_errors:
            shown = "; ".join(f"{name or self._path}: {why}" for name, why in done.failed[:_SHOWN_FAILURES])
            raise StorageError(f"{self._where}: {len(done.failed)} file(s) could not be copied: {shown}")
        if outcomes.total() != sum(map(len, self.plan.tasks)):
            raise StorageError(f"{self._where}: its tasks ended early; the next attempt goes on with it")
        if self._source_files() != self._found:
            raise StorageError(
                f"{self._where}: {self._path} on {self._from!r} changed while it was copied; the next attempt "
                "copies what changed"
            )
        changed = outcomes["copied"] + outcomes["resumed"] + len(self.plan.delete)
        to_publish = changed > 0 or not self._target.is_published
        if to_publish:
            rest = {*done.equal, *(name for name, _ in done.failed)}
            copied = [step.name for steps in self.plan.tasks for step in steps if step.name not in rest]
            self._target.finish(copied, self.plan.delete)
        else:
            records = [*self._target.published_records(), *self._target.staged_records()]
            self._target.end(true_records(records, self._target.published_files()).values())
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

    def _planned(self) -> CopyPlan:
        target, holds = self._target, self._holds
        published, records = target.published_files(), target.staged_records()
        recorded = true_records([*target.published_records(), *records], published)
        staged = true_records(records, target.staged_files()) if records else {}
        target.keep_records([*true_records(records, published).values(), *staged.values()])
        if not target.rules.replaces:
            made = frozenset[str]() if target.is_whole() else target.made()
            recorded |= self._compared(published, made | recorded.keys())
            made |= self._found.files.keys() - published.keys()
            target.note_made(made)
            holds = (made | self._found.files.keys()).__contains__
        at_once = target.store.cluster.interfaces.execute.tasks_at_once(os.cpu_count() or 1)
        return plan_copy(self._found.files, published, recorded, staged, holds, self._options, at_once)

    def _compared(self, published: Mapping[str, ListedFile], made: Collection[str]) -> dict[str, CopyRecord]:
        """Returns records of existing files that this copy did not make: each has to be the same."""
        records = {}
        source, target = self._source.store, self._target
        for name, (size, version) in self._found.files.items():
            if name not in published:
                if target.is_whole():
                    raise StorageError(f"{self._where}: what is there already differs, without {name}: move it away")
            elif name not in made:
                content = source.files.content(self._found.path(name), size)
                if target.store.files.content(join(target.place, name), published[name].size) != content:
                    there = join(target.output.path, name)
                    raise StorageError(f"{self._where}: {there} is there already, and differs: move it away")
                records[name] = CopyRecord(name, size, version, published[name].version, content[1])
        return records

    def _source_files(self) -> SourceFiles:
        found = self._source.source_files(self._path, self._target.output.flag, self._target.rules.left_out)
        if found is None:
            raise StorageError(f"{self._where}: {self._path} on {self._from!r} is not there, or not complete")
        return found._replace(files={name: file for name, file in found.files.items() if self._holds(name)})

    def _check_stores(self) -> None:
        target = self._target
        if target.in_place and target.rules.replaces and target.output.flag is None:
            raise StorageError(
                f"{self._where}: an object store publishes by setting the flag: declare availability_flag"
            )
        preserved = self._options.preserved
        if preserved and not target.store.files.keeps_attributes_of(self._source.store.files):
            raise StorageError(f"{self._where}: {', '.join(preserved)}: {PRESERVED_BETWEEN}: remove it")

    def _explained(self) -> AbstractContextManager[None]:
        return driver_explained(self._target.store.cluster.name, self._doing)

    @property
    def _doing(self) -> str:
        return f"{self._target.rules.verb} {self._target.output.path}"

    @property
    def _where(self) -> str:
        return f"cluster {self._target.store.cluster.name!r}: cannot {self._doing} from {self._from!r}"

    @property
    def _from(self) -> str:
        return self._source.store.cluster.name


def _cancellable(reports: Iterator[FileReport]) -> Iterator[FileReport]:
    for report in reports:
        current_cancellation().check()
        yield report
