"""Writes the files of an instance once more: sorted, in files of about one size, and verified."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pyarrow as pa

from falcon_assets.base.cancellation import current_cancellation
from falcon_assets.errors import StorageError
from falcon_assets.features.compaction.column_files import OrcFiles, ParquetFiles
from falcon_assets.features.compaction.line_files import LineFiles
from falcon_assets.features.compaction.row_digest import RowDigest
from falcon_assets.features.compaction.row_files import DataFile, RowFiles
from falcon_assets.features.compaction.sorting import ExternalSort

COLUMN_FORMATS = ("parquet", "orc")
LINE_FORMATS = ("csv", "json", "text")
_MEMORY = 64 << 20
"""Bytes of rows that are sorted at once."""
_GROUP_BYTES = 32 << 20
"""Bytes of rows that are written at once, at most: a row group of Parquet, a stripe of ORC."""


@dataclass(frozen=True)
class CompactionPlan:
    """How an instance is written.

    Attributes:
        format: Of the feed, with its ``options`` and ``schema``.
        sort: Columns; those in ``partitions`` are names of folders, and the same for all rows of one.
        file_bytes: About the size of each new file.
    """

    format: str
    sort: Sequence[str]
    file_bytes: int
    options: Mapping[str, str] = field(default_factory=dict)
    schema: str | None = None
    partitions: Sequence[str] = ()
    memory: int = _MEMORY


@dataclass(frozen=True)
class CompactedFiles:
    """What was written, which is verified: the same rows as were read."""

    files_before: int
    files: tuple[str, ...]
    content: RowDigest


@dataclass(frozen=True)
class NewFiles:
    """Where new files go: each is created, and read again to verify it."""

    create: Callable[[str], AbstractContextManager[IO[bytes]]]
    open: Callable[[str], AbstractContextManager[IO[bytes]]]


def compact(files: Sequence[DataFile], plan: CompactionPlan, place: NewFiles, spill: Path) -> CompactedFiles:
    """Writes the rows of ``files``, folder by folder, to ``place``; ``spill`` is for what exceeds the memory.

    Raises StorageError where rows cannot be kept as they are, and where those written are others than those read.
    """
    folders: dict[str, list[DataFile]] = {}
    for file in sorted(files, key=lambda one: one.name):
        folders.setdefault(file.folder, []).append(file)
    names, content = list[str](), RowDigest()
    for folder, own in folders.items():
        filled = [file for file in own if file.size]
        if not filled:
            continue
        one = _FolderRewrite(row_files(filled, plan, folder), plan, place, spill)
        names += one.run(filled, folder)
        content = RowDigest(
            content.rows + one.before.rows,
            (content.first + one.before.first) % 2**64,
            (content.second + one.before.second) % 2**64,
        )
    return CompactedFiles(len(files), tuple(names), content)


def row_files(files: Sequence[DataFile], plan: CompactionPlan, folder: str = "") -> RowFiles:
    named = {*plan.partitions, *(step.partition("=")[0] for step in folder.split("/") if "=" in step)}
    sort = [one for one in plan.sort if one not in named]
    if plan.format in LINE_FORMATS:
        return LineFiles(files, plan.format, sort, plan.options, plan.schema)
    return (OrcFiles if plan.format == "orc" else ParquetFiles)(files, sort, plan.options)


@dataclass
class _FolderRewrite:
    """The files of one folder."""

    rows: RowFiles
    plan: CompactionPlan
    place: NewFiles
    spill: Path
    before: RowDigest = field(default_factory=RowDigest, init=False)

    def run(self, files: Sequence[DataFile], folder: str) -> list[str]:
        named = f"{folder}/" if folder else ""
        names = list(self._write(self._sorted(files), named))
        written = [DataFile(name, 1, lambda name=name: self.place.open(name)) for name in names]  # type: ignore[misc]
        after = self._digest(self.rows.read_all(written))
        if after != self.before:
            raise StorageError(
                f"the {after.rows} rows that were written ({after}) are not the {self.before.rows} that were read "
                f"({self.before}): nothing is published"
            )
        return names

    def _sorted(self, files: Sequence[DataFile]) -> Iterator[pa.Table]:
        if not self.rows.keys:
            for table in self.rows.read_all(files):
                self.before = self._digest([table], self.before)
                yield table
            return
        ordered = ExternalSort(self.rows.keys, self.spill, self.plan.memory)
        for table in self.rows.read_all(files):
            current_cancellation().check()
            self.before = self._digest([table], self.before)
            ordered.add(table)
        yield from ordered.rows()

    def _digest(self, tables: Sequence[pa.Table] | Iterator[pa.Table], known: RowDigest = RowDigest()) -> RowDigest:  # noqa: B008 - it cannot be changed
        return known.of(table.select(self.rows.columns) for table in tables)

    def _write(self, tables: Iterator[pa.Table], folder: str) -> Iterator[str]:
        """Yields the name of each file when it is whole; one at least, which has the columns."""
        which, number = uuid.uuid4().hex, 0
        groups = _groups(tables, min(_GROUP_BYTES, self.plan.file_bytes))
        group = next(groups, None)
        while group is not None or not number:
            name = f"{folder}part-{number:05d}-{which}{self.rows.suffix}"
            with self.place.create(name) as sink:
                writer = self.rows.writer(sink)
                at = grown = 0
                while group is not None and at + grown // 2 < self.plan.file_bytes:
                    current_cancellation().check()
                    writer.write(group.select(self.rows.columns))
                    at, grown = sink.tell(), sink.tell() - at
                    group = next(groups, None)
                writer.close()
            yield name
            number += 1


def _groups(tables: Iterator[pa.Table], most: int) -> Iterator[pa.Table]:
    held: list[pa.Table] = []
    size = 0
    for table in tables:
        held.append(table)
        size += table.nbytes
        if size >= most:
            yield pa.concat_tables(held)
            held, size = [], 0
    if held:
        yield pa.concat_tables(held)
