"""Copying one file between any two stores, and verifying the copy."""

from __future__ import annotations

import os
import stat
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from fsspec import AbstractFileSystem

from falcon_assets.errors import StorageError
from falcon_assets.storage.files.checksum import checksum
from falcon_assets.storage.files.files_on import files_on

MEBIBYTE = 1 << 20
_SAVED_SECONDS = 1.0
"""How much unused time may be used up later: a slow second must not become a burst."""


class Throttle:
    """Delays the threads of a task to a common rate, in mebibytes per second; None: no limit."""

    def __init__(self, rate: float | None) -> None:
        self._seconds_per_byte = 1 / (rate * MEBIBYTE) if rate else 0.0
        self._lock = threading.Lock()
        self._paid_until = time.monotonic()

    def __call__(self, size: int) -> None:
        if not self._seconds_per_byte:
            return
        with self._lock:
            now = time.monotonic()
            self._paid_until = max(self._paid_until, now - _SAVED_SECONDS) + size * self._seconds_per_byte
            wait = self._paid_until - now
        if wait > 0:
            time.sleep(wait)

    def block(self, size: int) -> int:
        """Returns the largest block, up to ``size``, after which a wait is still short."""
        if not self._seconds_per_byte:
            return size
        return max(4096, min(size, int(0.25 / self._seconds_per_byte)))


COPY_DIFFERS = "the copy differs from what was read"
SOURCE_CHANGED = "it changed while it was copied"


class CopiedFile(NamedTuple):
    checksum: str
    verified: str
    """``checksum`` (read back), ``etag`` (the store says what it holds) or ``size``."""
    version: str


@dataclass(frozen=True)
class Attributes:
    """Attributes that a copy keeps of a file; none unless both stores have them."""

    permission: bool = False
    times: bool = False
    user: bool = False
    group: bool = False

    def __bool__(self) -> bool:
        return self.permission or self.times or self.user or self.group

    def apply(self, source: str, target: int) -> None:
        kept = os.stat(source)  # noqa: PTH116 - called for each of many small files
        if self.user or self.group:
            os.fchown(target, kept.st_uid if self.user else -1, kept.st_gid if self.group else -1)
        if self.permission:
            os.fchmod(target, stat.S_IMODE(kept.st_mode))
        if self.times:
            os.utime(target, ns=(kept.st_atime_ns, kept.st_mtime_ns))


class Proof:
    def __init__(self) -> None:
        self._digest = checksum()

    def update(self, block: bytes | memoryview) -> None:
        self._digest.update(block)

    @property
    def checksum(self) -> str:
        return self._digest.hexdigest()

    def verified(self, fs: AbstractFileSystem, path: str, size: int) -> str | None:
        return "checksum" if files_on(fs).content(path, size) == (size, self.checksum) else None


class FileCopy(ABC):
    """Copies files from any store to one of some kind; raises OSError from either store."""

    def __init__(
        self,
        source: AbstractFileSystem,
        target: AbstractFileSystem,
        throttle: Throttle,
        attributes: Attributes,
        by_size: bool,
    ) -> None:
        self.source, self.target = files_on(source), files_on(target)
        self.throttle, self.attributes, self.by_size = throttle, attributes, by_size

    @abstractmethod
    def copy(self, source: str, target: str, size: int) -> CopiedFile:
        """Copies and verifies one file; StorageError: the source is not of that size, or the copy differs."""

    def proof(self, size: int) -> Proof:
        return Proof()

    def compare(self, source: str, target: str, size: int) -> CopiedFile | None:
        """Reads the source, and the target unless its store keeps a digest; None if they differ."""
        proof = self.proof(size)
        for block in self.read(source, size):
            proof.update(block)
        try:
            return self.verified(proof, target, size)
        except FileNotFoundError:
            return None

    def verified(self, proof: Proof, target: str, size: int) -> CopiedFile | None:
        fs = self.target.fs
        how = ("size" if fs.size(target) == size else None) if self.by_size else proof.verified(fs, target, size)
        return CopiedFile(proof.checksum, how, self.target.version(target)) if how else None

    def read(self, source: str, size: int) -> Iterator[bytes | memoryview]:
        """Reads the source at the allowed rate, each block valid until the next; StorageError: it has another size."""
        total = 0
        for block in self.source.blocks(source, size, self.throttle.block):
            total += len(block)
            if total > size:
                break
            yield block
            self.throttle(len(block))
        if total != size:
            raise StorageError(SOURCE_CHANGED)
