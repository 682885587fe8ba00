"""Copies to file systems whose rename is atomic: made in the staging location, and swapped in.

Beside what :mod:`falcon_assets.storage.copying.copy_target` names, there is ``ATTEMPT/data`` with the files. The next
attempt takes the folder of a crashed one over by giving it another name, so that tasks which are still running find
their paths gone instead of writing among files that were verified meanwhile.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fsspec import AbstractFileSystem

from falcon_assets.errors import StorageError
from falcon_assets.storage.copying.copy_plan import CopyRecord, ListedFile
from falcon_assets.storage.copying.copy_records import RecordLog, to_lines
from falcon_assets.storage.copying.copy_target import CopiedPart, CopyTarget
from falcon_assets.storage.files.path_lock import path_lock
from falcon_assets.storage.instances.data_version import DataVersion, version_of
from falcon_assets.storage.kinds.renaming.bulk_sync import sync_all
from falcon_assets.storage.kinds.renaming.file_copy import MountedFileCopy
from falcon_assets.storage.kinds.renaming.moving import link_or_copy
from falcon_assets.storage.kinds.renaming.publication import RenamePublication


class AppendedLog(RecordLog):
    def __init__(self, fs: AbstractFileSystem, folder: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(f"{folder}/{uuid.uuid4().hex}.jsonl", flags, 0o666)

    def __exit__(self, *error: object) -> None:
        os.close(self._descriptor)

    def add(self, record: CopyRecord) -> None:
        os.write(self._descriptor, to_lines([record]))


_OUTPUT = "copy"


class RenamingCopyTarget(CopyTarget):
    in_place = False
    file_copy = MountedFileCopy
    record_log = AppendedLog

    def last_attempt(self) -> str:
        # Tasks of a killed run may have made a folder again that the next one had taken over: it has no records.
        left = sorted(Path(self.folder).glob("attempt-*"), key=lambda folder: Path(folder, "records").exists())
        return str(left[-1]) if left else f"{self.folder}/attempt"

    @contextmanager
    def held(self, where: str, seconds: float) -> Iterator[bool]:
        folder = Path(self.folder)
        copies, key = os.path.realpath(folder.parent.parent), folder.parent.name
        if os.path.realpath(folder.parent) != f"{copies}/{key}":
            raise StorageError(f"{where}: {folder.parent} is a symbolic link, and those are not followed: move it away")
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with path_lock(f"{folder}.lock", seconds) as is_ours:
                yield is_ours
        finally:
            self._remove_if_empty()

    def recover(self, where: str) -> None:
        RenamePublication.recover(self.store, where, self.output)

    def take_over(self) -> None:
        new = f"{self.folder}/attempt-{uuid.uuid4().hex}"
        if Path(self.attempt).exists():
            Path(self.attempt).rename(new)
        self.attempt = new
        for left in Path(self.folder).glob("attempt-*"):
            if str(left) != new:
                shutil.rmtree(left, ignore_errors=True)  # what the tasks of a killed run still made
        Path(new, "records").mkdir(parents=True, exist_ok=True)

    def write(self, path: str, content: bytes) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(content)

    def publish(
        self, key: str, parts: Sequence[CopiedPart], published: Mapping[str, ListedFile], flag: bytes
    ) -> DataVersion | None:
        checksums = self.assemble(parts, published)
        if flag and self.output.flag:
            Path(self.written, self.output.flag).write_bytes(flag)
        sync_all(self.folder)
        version = None
        if all(checksums.values()):
            version = version_of(
                (os.fsencode(name), record.size, bytes.fromhex(record.checksum))
                for name, record in checksums.items()
                if record
            )
        with RenamePublication(self.store, key, {_OUTPUT: self.output}) as publication:
            staging = publication.staging(_OUTPUT)
            Path(self.written).rename(staging)
            try:
                return publication.commit(_OUTPUT, version)
            finally:
                if os.path.lexists(staging):  # not published: what was copied is not to be copied again
                    Path(staging).rename(self.written)

    def assemble(
        self, parts: Sequence[CopiedPart], published: Mapping[str, ListedFile]
    ) -> dict[str, CopyRecord | None]:
        """Puts the new instance together where this part is written; returns the records (None: never verified)."""
        deleted = frozenset().union(*(part.delete for part in parts))
        copied = {name: record for part in parts for name, record in part.copied.items()}
        carried = [name for name in published if name not in deleted and name not in copied]
        if "" not in copied:
            Path(self.written).mkdir(parents=True, exist_ok=True)
        for name in self.staged_files().keys() - parts[0].copied.keys():
            Path(self.written, name).unlink()  # not verified, or of an earlier attempt at another plan
        for part in parts[1:]:
            _link(part.target.written, self.written, part.copied)
        _link(self.place, self.written, carried)
        known = {name: record for part in parts for name, record in part.known.items()}
        return {**{name: known.get(name) for name in carried}, **copied}

    def discard(self, *args: Any) -> None:
        super().discard(*args)
        self._remove_if_empty()

    def _remove_if_empty(self) -> None:
        with suppress(OSError):  # there is another source
            Path(self.folder).parent.rmdir()


def _link(source: str, target: str, names: Iterable[str]) -> None:
    """Puts files of one folder into another: as links, which cost nothing, or as copies."""
    folders: set[str] = set()
    for name in names:
        here, there = (f"{base}/{name}" if name else base for base in (source, target))
        folder = there.rpartition("/")[0]
        if folder not in folders:
            Path(folder).mkdir(parents=True, exist_ok=True)
            folders.add(folder)
        Path(there).unlink(missing_ok=True)
        link_or_copy(here, there)
