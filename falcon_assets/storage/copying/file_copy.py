"""Copying one file between any two stores, and verifying that the copy is right."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from fsspec import AbstractFileSystem

from falcon_assets.errors import StorageError
from falcon_assets.storage.copying.bulk_sync import start_writing
from falcon_assets.storage.copying.s3_etag import Etag, part_size
from falcon_assets.storage.copying.throttle import Throttle
from falcon_assets.storage.file_reading import is_local
from falcon_assets.storage.files.checksum import checksum, checksum_of
from falcon_assets.storage.files.files_on import files_on
from falcon_assets.storage.files.local_files import LOCAL_BLOCK, SMALL, local_mark, read_small

_WRITTEN_AT_ONCE = 16 << 20
"""How much of a file the disk is given while the rest is copied: publishing then has little to wait for."""
_DIFFERS = "the copy differs from what was read"


class CopiedFile(NamedTuple):
    """A copy that was found to be right."""

    checksum: str
    """Of the content, hexadecimal."""
    verified: str
    """How: ``checksum`` (read back), ``etag`` (the store says what it holds) or ``size``."""
    mark: str
    """The target's, as it was then."""


@dataclass(frozen=True)
class Attributes:
    """What a local copy keeps of a local file, beside its content."""

    permission: bool = False
    times: bool = False
    user: bool = False
    group: bool = False

    def __bool__(self) -> bool:
        return self.permission or self.times or self.user or self.group

    def apply(self, source: str, target: int) -> None:
        """Gives the file that is open as ``target`` what is kept of the file ``source``.

        Raises:
            OSError: as the operating system says.
        """
        kept = os.stat(source)  # noqa: PTH116 - called for each of many small files
        if self.user or self.group:
            os.fchown(target, kept.st_uid if self.user else -1, kept.st_gid if self.group else -1)
        if self.permission:
            os.fchmod(target, stat.S_IMODE(kept.st_mode))
        if self.times:
            os.utime(target, ns=(kept.st_atime_ns, kept.st_mtime_ns))


class FileCopy:
    """Copies files from one store to another.

    Args:
        source: Where they are.
        target: Where they go.
        throttle: Limits the bytes per second.
        attributes: What is kept of them; nothing unless both stores are local.
        by_size: Whether the size alone is verified.
    """

    def __init__(
        self,
        source: AbstractFileSystem,
        target: AbstractFileSystem,
        throttle: Throttle,
        attributes: Attributes,
        by_size: bool,
    ) -> None:
        self._source, self._target, self._throttle = source, target, throttle
        self._attributes, self._by_size = attributes, by_size
        self._both_local = is_local(source) and is_local(target)
        self._folders: set[str] = set()
        self._disk = ThreadPoolExecutor(1)  # it ends with what it was given; nobody waits for it

    def copy(self, source: str, target: str, size: int) -> CopiedFile:
        """Copies and verifies one file; its folder is made.

        Raises:
            StorageError: the source has another size than ``size``, or the copy differs from what was read.
            OSError: as one of the stores says.
        """
        if self._both_local and size <= SMALL:
            return self._copy_small(source, target, size)
        if is_local(self._target):
            return self._to_local(source, target, size)
        digest, etag = self._to_store(source, target, size)
        verified = self._proof(target, size, digest, etag)
        if verified is None:
            raise StorageError(_DIFFERS)
        return CopiedFile(digest, verified, files_on(self._target).mark(target))

    def compare(self, source: str, target: str, size: int) -> CopiedFile | None:
        """Reads the source, and the target where it does not say what it holds; None where they differ.

        Raises:
            StorageError: the source has another size than ``size``.
            OSError: as one of the stores says.
        """
        digest = checksum()
        etag = None if is_local(self._target) else Etag(part_size(size))
        for block in self._read(source, size):
            digest.update(block)
            if etag:
                etag.update(block)
        try:
            verified = self._proof(target, size, digest.hexdigest(), etag.hexdigest() if etag else None)
        except FileNotFoundError:
            return None
        return CopiedFile(digest.hexdigest(), verified, files_on(self._target).mark(target)) if verified else None

    def _read(self, source: str, size: int) -> Iterator[bytes | memoryview]:
        """The blocks of the source, at the rate that is allowed."""
        total = 0
        for block in files_on(self._source).blocks(source, size, self._throttle.block):
            total += len(block)
            if total > size:
                break
            yield block
            self._throttle(len(block))
        if total != size:
            raise StorageError("it changed while it was copied")

    def _copy_small(self, source: str, target: str, size: int) -> CopiedFile:
        """As the general way, with nothing in it that would take longer than the system's own calls."""
        data = read_small(source, size)
        if len(data) != size:
            raise StorageError("it changed while it was copied")
        self._throttle(size)
        descriptor = self._new_file(target)
        try:
            _write(descriptor, data)
            if self._attributes:
                self._attributes.apply(source, descriptor)
            digest = checksum_of(data)
            if self._by_size:
                return CopiedFile(digest, "size", local_mark(os.fstat(descriptor)))
            written = os.pread(descriptor, size + 1, 0)
            if len(written) != size or checksum_of(written) != digest:
                raise StorageError(_DIFFERS)
            return CopiedFile(digest, "checksum", local_mark(os.fstat(descriptor)))
        finally:
            os.close(descriptor)

    def _to_local(self, source: str, target: str, size: int) -> CopiedFile:
        """Writes a new file, never into one that is there: that could be a link to what readers see.

        Each block is read back while the processor's cache still has it.
        """
        descriptor = self._new_file(target)
        try:
            digest, found, total, started = checksum(), checksum(), 0, 0
            buffer = memoryview(bytearray(LOCAL_BLOCK))
            for block in self._read(source, size):
                digest.update(block)
                _write(descriptor, block)
                if not self._by_size:
                    for part in _read_back(descriptor, total, len(block), buffer):
                        found.update(part)
                total += len(block)
                if total - started >= _WRITTEN_AT_ONCE:
                    self._start_writing(descriptor, started, total)
                    started = total
            self._start_writing(descriptor, started, total)
            if self._attributes:
                self._attributes.apply(source, descriptor)
            status = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        if status.st_size != size or not (self._by_size or found.digest() == digest.digest()):
            raise StorageError(_DIFFERS)
        return CopiedFile(digest.hexdigest(), "size" if self._by_size else "checksum", local_mark(status))

    def _start_writing(self, descriptor: int, start: int, end: int) -> None:
        """Has a part of an open file written to the disk, by a thread: a full disk queue holds up who asks for it."""
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

    def _to_store(self, source: str, target: str, size: int) -> tuple[str, str]:
        """Writes an object, a large one in parts; its checksum, and the etag that S3 gives it."""
        digest, part = checksum(), part_size(size)
        etag = Etag(part)
        if part is None:
            data = b"".join(self._read(source, size))
            digest.update(data)
            etag.update(data)
            self._target.pipe_file(target, data)
            return digest.hexdigest(), etag.hexdigest()
        file = self._target.open(target, "wb", block_size=part)
        try:
            waiting = bytearray()
            for block in self._read(source, size):
                digest.update(block)
                etag.update(block)
                waiting += block
                while len(waiting) >= part:
                    file.write(bytes(waiting[:part]))
                    del waiting[:part]
            file.write(bytes(waiting))
        except BaseException:
            file.discard()  # nobody ever sees an object that was not closed
            file.closed = True
            raise
        file.close()
        return digest.hexdigest(), etag.hexdigest()

    def _proof(self, target: str, size: int, digest: str, etag: str | None) -> str | None:
        """How the target was found to hold that content; None where it does not."""
        if self._by_size:
            return "size" if self._target.size(target) == size else None
        if etag is not None:
            info = self._target.info(target)
            told = str(info.get("ETag", "")).strip('"')
            if info["size"] == size and told == etag:
                return "etag"
        return "checksum" if files_on(self._target).content(target, size) == (size, digest) else None


def _read_back(descriptor: int, start: int, size: int, buffer: memoryview) -> Iterator[memoryview]:
    """A part of an open file in blocks, each of which is good until the next one is asked for."""
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
