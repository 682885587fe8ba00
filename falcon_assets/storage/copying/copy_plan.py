"""The plan of one copy: what happens to each file, and how the work is divided.

The *version* of a file is from its store's listing: while it stays the same, so does the content. A *record* says that
a source file of one version was found to be the same as a target file of another one.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from falcon_assets.planning.replication import ReplicationOptions


TASK_BYTES = 128 << 20
"""About one task for so many bytes: starting one costs as much as copying some mebibytes."""
FILE_BYTES = 8 << 10
"""The cost of opening and checking a file, as bytes: a task must not get all of ten thousand empty files."""

SMALL_BYTES = 16 << 20
SMALL_FILES = 100
"""A copy within both limits is done where it was planned, within seconds: starting Spark takes longer."""


class ListedFile(NamedTuple):
    size: int
    version: str


class CopyRecord(NamedTuple):
    name: str
    """Relative to the instance; "" for an instance that is a single file."""
    size: int
    source_version: str
    target_version: str
    checksum: str


class Step(str, Enum):
    COPY = "copy"
    COMPARE = "compare"
    """Reads it on both sides and copies it if they differ: the sizes are equal, and there is no record."""
    CHECK = "check"
    """Reads what an earlier attempt left in staging, and copies it again if that differs from the record."""


class FileStep(NamedTuple):
    step: Step
    name: str
    size: int
    version: str
    checksum: str = ""


@dataclass(frozen=True)
class CopyPlan:
    tasks: tuple[tuple[FileStep, ...], ...]
    equal: tuple[str, ...]
    delete: tuple[str, ...]
    keep: tuple[str, ...]

    @property
    def is_done(self) -> bool:
        return not self.tasks and not self.delete

    @property
    def is_small(self) -> bool:
        sizes = [step.size for steps in self.tasks for step in steps]
        return len(sizes) <= SMALL_FILES and sum(sizes) <= SMALL_BYTES


def plan_copy(
    source: Mapping[str, ListedFile],
    target: Mapping[str, ListedFile],
    recorded: Mapping[str, CopyRecord],
    staged: Mapping[str, CopyRecord],
    holds: Callable[[str], bool],
    options: ReplicationOptions,
    at_once: int | None = None,
) -> CopyPlan:
    """Divides the files that this source ``holds`` (:meth:`Contribution.holds`) into tasks.

    ``recorded`` was verified of the published instance, ``staged`` by an earlier attempt. More tasks than run
    ``at_once`` would only cost their start; None: unknown.
    """
    steps: list[FileStep] = []
    equal: list[str] = []
    part = {name: file for name, file in source.items() if holds(name)}
    for name, (size, version) in part.items():
        step, checksum = _step(name, part[name], target.get(name), recorded.get(name), staged.get(name), options)
        if step is None:
            equal.append(name)
        else:
            steps.append(FileStep(step, name, size, version, checksum))
    gone = {name for name in target if name not in part and holds(name)} if options.remove_deleted_files else set()
    kept = [name for name in target if name not in part and name not in gone]
    most = options.max_maps if at_once is None else min(options.max_maps, at_once)
    return CopyPlan(balanced(steps, most), tuple(equal), tuple(sorted(gone)), tuple(kept))


def _step(
    name: str,
    source: ListedFile,
    target: ListedFile | None,
    recorded: CopyRecord | None,
    staged: CopyRecord | None,
    options: ReplicationOptions,
) -> tuple[Step | None, str]:
    if staged and (staged.size, staged.source_version) == source:
        return Step.CHECK, staged.checksum
    if target is None or target.size != source.size or options.overwrite:
        return Step.COPY, ""
    if options.skip_checksum or source.size == 0:
        return None, ""
    if recorded and (recorded.source_version, recorded.target_version) == (source.version, target.version):
        return None, ""
    return Step.COMPARE, ""


def balanced(steps: Iterable[FileStep], most: int) -> tuple[tuple[FileStep, ...], ...]:
    """Assigns the largest file first, to the task with the fewest bytes: none has much more than a fair share."""
    ordered = sorted(steps, key=attrgetter("size"), reverse=True)
    weight = sum(step.size + FILE_BYTES for step in ordered)
    count = min(most, len(ordered), max(1, round(weight / TASK_BYTES)))
    tasks: list[list[FileStep]] = [[] for _ in range(count)]
    lightest = [(0, number) for number in range(count)]
    for step in ordered:
        load, number = lightest[0]
        tasks[number].append(step)
        heapq.heapreplace(lightest, (load + step.size + FILE_BYTES, number))
    return tuple(map(tuple, tasks))
