"""Copies to file systems whose rename is atomic: made in the staging location, and swapped in.

Beside what :mod:`falcon_assets.storage.copying.copy_target` names, there is ``ATTEMPT/data`` with the files. The next
attempt takes the folder of a crashed one over by giving it another name, so that tasks which are still running find
their paths gone instead of writing among files that were verified meanwhile.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, ClassVar

from fsspec import AbstractFileSystem

from falcon_assets.errors import StorageError
from falcon_assets.storage.copying.copy_plan import CopyRecord, ListedFile
from falcon_assets.storage.copying.copy_records import BatchedLog, RecordLog, to_lines
from falcon_assets.storage.copying.copy_target import COPY, CopiedPart, StagedCopyTarget
from falcon_assets.storage.copying.file_copy import FileCopy
from falcon_assets.storage.instances.data_version import DataVersion, version_of
from falcon_assets.storage.instances.publication import InstancePublication
from falcon_assets.storage.kinds.renaming.bulk_sync import sync_all
from falcon_assets.storage.kinds.renaming.file_copy import HdfsFileCopy, MountedFileCopy
from falcon_assets.storage.kinds.renaming.publication import RenamePublication


class AppendedLog(RecordLog):
    def __init__(self, fs: AbstractFileSystem, folder: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(f"{folder}/{uuid.uuid4().hex}.jsonl", flags, 0o666)

    def __exit__(self, *error: object) -> None:
        os.close(self._descriptor)

    def add(self, record: CopyRecord) -> None:
        os.write(self._descriptor, to_lines([record]))


class RenamingCopyTarget(StagedCopyTarget):
    file_copy: ClassVar[type[FileCopy]] = HdfsFileCopy
    record_log: ClassVar[type[RecordLog]] = BatchedLog

    def last_attempt(self) -> str:
        # Tasks of a killed run may have made a folder again that the next one had taken over: it has no records.
        left = sorted(self._attempts(), key=lambda folder: bool(self.fs.exists(f"{folder}/records")))
        return left[-1] if left else f"{self.folder}/attempt"

    @contextmanager
    def held(self, where: str, seconds: float) -> Iterator[bool]:
        yield True  # there are no locks that end with their holder

    def recover(self, where: str) -> None:
        RenamePublication.recover(self.store, where, self.output)

    def take_over(self) -> None:
        new = f"{self.folder}/attempt-{uuid.uuid4().hex}"
        with suppress(FileNotFoundError):
            self.store.files.move(self.attempt, new)
        self.attempt = new
        for left in self._attempts():
            if left != new:
                self.store.files.discard(left)  # what the tasks of a killed run still made
        self.fs.makedirs(f"{new}/records", exist_ok=True)

    def write(self, path: str, content: bytes) -> None:
        self.store.files.write(path, content)

    def publication(
        self, key: str, records: Mapping[str, CopyRecord | None]
    ) -> AbstractContextManager[InstancePublication]:
        return RenamePublication(self.store, key, {COPY: self.output})

    def assemble(
        self, parts: Sequence[CopiedPart], published: Mapping[str, ListedFile]
    ) -> Mapping[str, CopyRecord | None]:
        deleted = frozenset().union(*(part.delete for part in parts))
        copied = {name: record for part in parts for name, record in part.copied.items()}
        carried = [name for name in published if name not in deleted and name not in copied]
        if "" not in copied:
            self.fs.makedirs(self.written, exist_ok=True)
        for name in self.staged_files().keys() - parts[0].copied.keys():
            self.fs.rm_file(f"{self.written}/{name}")  # not verified, or of an earlier attempt at another plan
        for part in parts[1:]:
            self._link(part.target.written, part.copied)
        self._link(self.place, carried)
        known = {name: record for part in parts for name, record in part.known.items()}
        return {**{name: known.get(name) for name in carried}, **copied}

    def discard(self, *args: Any) -> None:
        super().discard(*args)
        self._remove_if_empty()

    def _remove_if_empty(self) -> None:
        with suppress(OSError):  # there is another source
            self.fs.rmdir(self.folder.rpartition("/")[0])

    def _link(self, source: str, names: Iterable[str]) -> None:
        for name in names:
            here, there = (f"{base}/{name}" if name else base for base in (source, self.written))
            self.store.files.link(here, there)

    def _attempts(self) -> list[str]:
        found = self.store.files.entries(self.folder)
        return [one for one in found if one.rpartition("/")[2].startswith("attempt-")]


class MountedCopyTarget(RenamingCopyTarget):
    file_copy = MountedFileCopy
    record_log = AppendedLog

    @contextmanager
    def held(self, where: str, seconds: float) -> Iterator[bool]:
        files, folder = self.store.files, self.folder.rpartition("/")[0]
        copies, _, key = folder.rpartition("/")
        if files.real(folder) != f"{files.real(copies)}/{key}":
            raise StorageError(f"{where}: {folder} is a symbolic link, and those are not followed: move it away")
        self.fs.makedirs(self.folder, exist_ok=True)
        try:
            with files.locked(f"{self.folder}.lock", seconds) as is_ours:
                yield is_ours
        finally:
            self._remove_if_empty()

    def publication(
        self, key: str, records: Mapping[str, CopyRecord | None]
    ) -> AbstractContextManager[InstancePublication]:
        sync_all(self.folder)
        return RenamePublication(self.store, key, {COPY: self.output}, _verified(records))


def _verified(records: Mapping[str, CopyRecord | None]) -> DataVersion | None:
    known = [one for one in records.values() if one]
    if len(known) < len(records):
        return None
    return version_of((os.fsencode(one.name), one.size, bytes.fromhex(one.checksum)) for one in known)
