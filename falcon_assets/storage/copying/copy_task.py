"""One task of a copy, wherever it runs: it needs nothing but the stores."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from fsspec import AbstractFileSystem

from falcon_assets.errors import StorageError
from falcon_assets.storage.copying.copy_plan import CopyRecord, FileStep, Step
from falcon_assets.storage.copying.copy_records import RecordLog, from_lines
from falcon_assets.storage.copying.file_copy import Attributes, FileCopy, Throttle
from falcon_assets.storage.files.files_on import files_on


class FileReport(NamedTuple):
    name: str
    outcome: str
    """``copied``, ``equal`` (it was the same already), ``resumed`` (an earlier attempt copied it) or ``failed``."""
    bytes: int
    seconds: float
    checksum: str
    verified: str
    """How it was verified: ``checksum``, ``etag`` or ``size``; with ``failed``, why."""


@dataclass(frozen=True)
class TaskSummary:
    """The results for the files of one task or of several, as short as possible: there may be a million."""

    outcomes: dict[str, int] = field(default_factory=dict)
    verified: dict[str, int] = field(default_factory=dict)
    bytes: int = 0
    """Of the copied files only."""
    seconds: float = 0.0
    equal: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, reports: Iterable[FileReport]) -> TaskSummary:
        outcomes, verified = Counter[str](), Counter[str]()
        size, seconds, equal, failed = 0, 0.0, list[str](), list[tuple[str, str]]()
        for report in reports:
            outcomes[report.outcome] += 1
            seconds += report.seconds
            if report.outcome == "copied":
                verified[report.verified] += 1
                size += report.bytes
            elif report.outcome == "equal":
                equal.append(report.name)
            elif report.outcome == "failed":
                failed.append((report.name, report.verified))
        return cls(dict(outcomes), dict(verified), size, seconds, tuple(equal), tuple(failed))

    @classmethod
    def together(cls, summaries: Sequence[TaskSummary]) -> TaskSummary:
        return cls(
            outcomes=dict(sum((Counter(one.outcomes) for one in summaries), Counter())),
            verified=dict(sum((Counter(one.verified) for one in summaries), Counter())),
            bytes=sum(one.bytes for one in summaries),
            seconds=sum(one.seconds for one in summaries),
            equal=tuple(chain.from_iterable(one.equal for one in summaries)),
            failed=tuple((name, why) for one in summaries for name, why in one.failed),
        )


@dataclass(frozen=True)
class CopyJob:
    """The common part of all tasks of one copy; it is shipped to where they run."""

    source: AbstractFileSystem = field(repr=False)
    source_base: str
    target: AbstractFileSystem = field(repr=False)
    target_base: str
    written_base: str
    """Where files are written: in staging, or the published instance itself on object stores."""
    folder: str
    file_copy: type[FileCopy]
    record_log: type[RecordLog]
    requests: int = 1
    rate: float | None = None
    """Mebibytes per second of each task."""
    by_size: bool = False
    attributes: Attributes = field(default_factory=Attributes)
    to_the_end: bool = False
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    """By name: absolute paths of source files that are not in its folder."""

    def plan_path(self, number: int) -> str:
        return f"{self.folder}/plan/{number}.json"


def run_task(job: CopyJob, number: int) -> Iterator[FileReport]:
    """Does the steps of one task; records each at once. A file that fails is reported, not raised."""
    rows = json.loads(job.target.cat_file(job.plan_path(number)))
    steps = [FileStep(Step(step), *rest) for step, *rest in rows]
    with job.record_log(job.target, f"{job.folder}/records") as log:
        do = _Worker(job, log).do
        if job.requests == 1:
            yield from _until_failure(map(do, steps), job.to_the_end)
        else:
            with ThreadPoolExecutor(min(job.requests, len(steps) or 1)) as pool:
                try:
                    yield from _until_failure(pool.map(do, steps), job.to_the_end)
                finally:
                    pool.shutdown(cancel_futures=True)


def _until_failure(reports: Iterator[FileReport], to_the_end: bool) -> Iterator[FileReport]:
    for report in reports:
        yield report
        if report.outcome == "failed" and not to_the_end:
            return


class _Worker:
    def __init__(self, job: CopyJob, log: RecordLog) -> None:
        self._job, self._log = job, log
        self._files = job.file_copy(job.source, job.target, Throttle(job.rate), job.attributes, job.by_size)

    def do(self, step: FileStep) -> FileReport:
        started = time.perf_counter()
        try:
            outcome, checksum, verified = self._done(step)
        except Exception as error:  # drivers raise anything
            outcome, checksum, verified = "failed", "", _reason(error)
        return FileReport(step.name, outcome, step.size, time.perf_counter() - started, checksum, verified)

    def _done(self, step: FileStep) -> tuple[str, str, str]:
        job = self._job
        source = job.elsewhere.get(step.name) or join(job.source_base, step.name)
        written = join(job.written_base, step.name)
        if step.step is Step.CHECK and self._holds(written, step.size, step.checksum):
            return "resumed", step.checksum, "checksum"
        outcome, copied = "equal", None
        if step.step is Step.COMPARE:
            copied = self._files.compare(source, join(job.target_base, step.name), step.size)
        if copied is None:
            outcome, copied = "copied", self._files.copy(source, written, step.size)
        self._log.add(CopyRecord(step.name, step.size, step.version, copied.version, copied.checksum))
        return outcome, copied.checksum, copied.verified

    def _holds(self, path: str, size: int, checksum: str) -> bool:
        try:
            return files_on(self._job.target).content(path, size) == (size, checksum)
        except FileNotFoundError:
            return False


def join(base: str, name: str) -> str:
    return f"{base}/{name}" if name else base


def _reason(error: Exception) -> str:
    """Returns our own words or the operating system's: drivers may quote secrets."""
    if isinstance(error, StorageError):
        return str(error)
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else type(error).__name__


@dataclass(frozen=True)
class CopyProgress:
    files: int
    of_files: int
    """Files that the tasks look at."""
    bytes: int
    of_bytes: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.bytes / self.seconds if self.seconds else 0.0


class ProgressReader:
    """Reads the records since the last call, each once; ``sizes`` are those of the tasks' files."""

    def __init__(self, job: CopyJob, sizes: dict[str, int]) -> None:
        self._fs, self._folder, self._sizes = job.target, f"{job.folder}/records", sizes
        self._started, self._read = time.monotonic(), dict[str, int]()
        self._done: set[str] = set()
        self._old = self._new_names()  # of earlier attempts

    def __call__(self) -> CopyProgress:
        self._done |= self._new_names() & self._sizes.keys() - self._old
        return CopyProgress(
            files=len(self._done),
            of_files=len(self._sizes),
            bytes=sum(map(self._sizes.__getitem__, self._done)),
            of_bytes=sum(self._sizes.values()),
            seconds=time.monotonic() - self._started,
        )

    def _new_names(self) -> set[str]:
        names: set[str] = set()
        try:
            logs = self._fs.ls(self._folder, detail=True)
        except FileNotFoundError:
            return names
        for entry in logs:
            log, size = str(entry["name"]), int(entry["size"])
            start = self._read.get(log, 0)
            if size > start:
                text: bytes = self._fs.cat_file(log, start=start, end=size)
                whole = text[: text.rfind(b"\n") + 1]  # the rest of a line is still being written
                self._read[log] = start + len(whole)
                names.update(record.name for record in from_lines(whole))
        return names
