"""Copies to HDFS: made in the staging location, and swapped in.

Beside what :mod:`falcon_assets.storage.copying.copy_target` names, there is ``ATTEMPT/data`` with the files. The next
attempt takes the folder of a crashed one over by giving it another name.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from falcon_assets.errors import StorageError
from falcon_assets.storage.copying.copy_plan import ListedFile
from falcon_assets.storage.copying.copy_target import CopiedPart, CopyTarget
from falcon_assets.storage.copying.file_copy import COPY_DIFFERS, CopiedFile, FileCopy
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.kinds.hdfs.output_swap import HdfsSwap
from falcon_assets.storage.kinds.hdfs.publication import HdfsPublication
from falcon_assets.storage.kinds.objects.record_log import BatchedLog

_OUTPUT = "copy"
_GIVING = (
    "HDFS lets only its superuser give a file to another owner, and an owner to groups that he is in: copy as that "
    "user, or take preserveUser and preserveGroup out"
)


class HdfsFileCopy(FileCopy):
    def copy(self, source: str, target: str, size: int) -> CopiedFile:
        proof = self.proof(size)

        def blocks() -> Iterator[bytes]:
            for block in self.read(source, size):
                proof.update(block)
                yield bytes(block)

        self.target.fs.pipe_file(target, blocks())
        copied = self.verified(proof, target, size)
        if copied is None:
            raise StorageError(COPY_DIFFERS)
        if self.attributes:  # when it was read back: it may be nothing for us to read any more
            self._keep_attributes(self.source.fs.info(source), target)
            copied = copied._replace(version=self.target.version(target))
        return copied

    def _keep_attributes(self, kept: Mapping[str, Any], target: str) -> None:
        fs, asked = self.target.fs, self.attributes
        if asked.permission:
            fs.chmod(target, kept["mode"])
        if asked.times:
            fs.utime(target, kept["modificationTime"])
        if asked.user or asked.group:  # last: what is given away cannot be changed any more
            owner, group = (kept["owner"] if asked.user else None), (kept["group"] if asked.group else None)
            try:
                fs.chown(target, owner, group)
            except PermissionError:
                raise StorageError(
                    f"cannot give it to {' and '.join(filter(None, (owner, group)))}: {_GIVING}"
                ) from None


class HdfsCopyTarget(CopyTarget):
    in_place = False
    file_copy = HdfsFileCopy
    record_log = BatchedLog

    def last_attempt(self) -> str:
        left = sorted(self._attempts(), key=lambda folder: bool(self.fs.exists(f"{folder}/records")))
        return left[-1] if left else f"{self.folder}/attempt"

    @contextmanager
    def held(self, where: str, seconds: float) -> Iterator[bool]:
        yield True  # there are no locks that end with their holder

    def recover(self, where: str) -> None:
        HdfsSwap(self.store, self.output, where).recover()

    def take_over(self) -> None:
        new = f"{self.folder}/attempt-{uuid.uuid4().hex}"
        with suppress(FileNotFoundError):
            self.fs.mv(self.attempt, new)
        self.attempt = new
        for left in self._attempts():
            if left != new:
                self.drop(left)
        self.fs.mkdir(f"{new}/records")

    def write(self, path: str, content: bytes) -> None:
        self.fs.pipe_file(path, content)

    def publish(
        self, key: str, parts: Sequence[CopiedPart], published: Mapping[str, ListedFile], flag: bytes
    ) -> DataVersion | None:
        self._assemble(parts, published)
        if flag and self.output.flag:
            self.write(f"{self.written}/{self.output.flag}", flag)
        with HdfsPublication(self.store, key, {_OUTPUT: self.output}) as publication:
            staging = publication.staging(_OUTPUT)
            self.fs.mv(self.written, staging)
            try:
                return publication.commit(_OUTPUT)
            finally:
                with suppress(FileNotFoundError):  # not published: what was copied is not to be copied again
                    self.fs.mv(staging, self.written)

    def discard(self, *args: Any) -> None:
        super().discard(*args)
        with suppress(OSError):  # there is another source
            self.fs.rmdir(self.folder.rpartition("/")[0])

    def _assemble(self, parts: Sequence[CopiedPart], published: Mapping[str, ListedFile]) -> None:
        deleted = frozenset().union(*(part.delete for part in parts))
        copied = {name for part in parts for name in part.copied}
        if "" not in copied:
            self.fs.mkdir(self.written)
        for name in self.staged_files().keys() - parts[0].copied.keys():
            self.fs.rm(f"{self.written}/{name}")  # not verified, or of an earlier attempt at another plan
        for part in parts[1:]:
            self._bring(part.target.written, part.copied)
        self._bring(self.place, [name for name in published if name not in deleted and name not in copied])

    def _bring(self, source: str, names: Iterable[str]) -> None:
        for name in names:
            here, there = (f"{base}/{name}" if name else base for base in (source, self.written))
            self.fs.cp_file(here, there)

    def _attempts(self) -> list[str]:
        try:
            found = self.fs.ls(self.folder, detail=False)
        except FileNotFoundError:
            return []
        return [one for one in map(str, found) if one.rpartition("/")[2].startswith("attempt-")]
