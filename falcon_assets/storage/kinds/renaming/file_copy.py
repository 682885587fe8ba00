"""Copying one file to a file system: to a mounted one, read back while it is written, or to HDFS."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from falcon_assets.errors import StorageError
from falcon_assets.storage.copying.file_copy import COPY_DIFFERS, SOURCE_CHANGED, CopiedFile, FileCopy
from falcon_assets.storage.files.checksum import checksum, checksum_of
from falcon_assets.storage.files.local_files import LOCAL_BLOCK, SMALL, stat_version
from falcon_assets.storage.kinds.renaming.bulk_sync import start_writing

_WRITTEN_AT_ONCE = 16 << 20
"""Bytes that the disk gets while the rest is copied: publishing then has little to wait for."""
_GIVING = (
    "HDFS lets only its superuser give a file to another owner, and an owner to groups that he is in: copy as that "
    "user, or take preserveUser and preserveGroup out"
)


class MountedFileCopy(FileCopy):
    """Writes new files, never into an existing one: that could be a link to what readers see."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._folders: set[str] = set()
        self._disk = ThreadPoolExecutor(1)  # it ends with what it was given; nobody waits for it

    def copy(self, source: str, target: str, size: int) -> CopiedFile:
        if size <= SMALL:
            return self._copy_small(source, target, size)
        descriptor = self._new_file(target)
        try:
            digest, found, total, started = checksum(), checksum(), 0, 0
            buffer = memoryview(bytearray(LOCAL_BLOCK))
            for block in self.read(source, size):
                digest.update(block)
                _write(descriptor, block)
                if not self.by_size:  # each block is read back while the processor's cache still has it
                    for part in _read_back(descriptor, total, len(block), buffer):
                        found.update(part)
                total += len(block)
                if total - started >= _WRITTEN_AT_ONCE:
                    self._start_writing(descriptor, started, total)
                    started = total
            self._start_writing(descriptor, started, total)
            if self.attributes:
                self.attributes.apply(source, descriptor)
            status = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        if status.st_size != size or not (self.by_size or found.digest() == digest.digest()):
            raise StorageError(COPY_DIFFERS)
        return CopiedFile(digest.hexdigest(), "size" if self.by_size else "checksum", stat_version(status))

    def _copy_small(self, source: str, target: str, size: int) -> CopiedFile:
        """Copies with nothing that takes longer than the system's own calls."""
        data = self.source.small(source, size)
        if len(data) != size:
            raise StorageError(SOURCE_CHANGED)
        self.throttle(size)
        descriptor = self._new_file(target)
        try:
            _write(descriptor, data)
            if self.attributes:
                self.attributes.apply(source, descriptor)
            digest = checksum_of(data)
            if not self.by_size:
                written = os.pread(descriptor, size + 1, 0)
                if len(written) != size or checksum_of(written) != digest:
                    raise StorageError(COPY_DIFFERS)
            return CopiedFile(digest, "size" if self.by_size else "checksum", stat_version(os.fstat(descriptor)))
        finally:
            os.close(descriptor)

    def _start_writing(self, descriptor: int, start: int, end: int) -> None:
        """Writes a part of an open file by a thread: a full disk queue blocks its caller."""
        self._disk.submit(_write_and_close, os.dup(descriptor), start, end - start)

    def _new_file(self, target: str) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        folder = target.rpartition("/")[0]
        if folder not in self._folders:
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - paths of fsspec are texts
            self._folders.add(folder)
        try:
            return os.open(target, flags, 0o666)
        except FileExistsError:
            os.unlink(target)  # noqa: PTH108 - as above
            return os.open(target, flags, 0o666)


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


def _read_back(descriptor: int, start: int, size: int, buffer: memoryview) -> Iterator[memoryview]:
    end = start + size
    while start < end and (count := os.preadv(descriptor, [buffer[: end - start]], start)):
        yield buffer[:count]
        start += count


def _write_and_close(descriptor: int, start: int, size: int) -> None:
    try:
        start_writing(descriptor, start, size)
    finally:
        os.close(descriptor)


def _write(descriptor: int, block: bytes | memoryview) -> None:
    written = os.write(descriptor, block)
    while written < len(block):
        written += os.write(descriptor, block[written:])
