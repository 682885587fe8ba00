"""The files of a mounted file system: its paths are those of the operating system."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

from falcon_assets.storage.files.file_access import FileAccess

LOCAL_BLOCK = 128 << 10
"""What a processor's own cache holds three times, so that a block is read, hashed and written before it leaves it."""
SMALL = 64 << 10
"""Files up to this size are read by one call."""


class LocalFiles(FileAccess):
    """See :class:`FileAccess`."""

    def refresh(self) -> None:
        pass  # nothing is remembered

    def real(self, path: str) -> str:
        return os.path.realpath(path)

    def blocks(self, path: str, size: int, at_most: Callable[[int], int] = int) -> Iterator[bytes | memoryview]:
        step = at_most(LOCAL_BLOCK)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            # A small file is read by what it needs: making a large buffer for it would take longer than reading it.
            left = os.fstat(descriptor).st_size + 1
            if left <= SMALL:
                while read := os.read(descriptor, min(left, step)):
                    yield memoryview(read)
                return
            buffer = memoryview(bytearray(step))
            while count := os.readv(descriptor, [buffer]):
                yield buffer[:count]
        finally:
            os.close(descriptor)

    def mark(self, path: str) -> str:
        return local_mark(os.stat(path))  # noqa: PTH116 - a text

    def remove(self, paths: Iterable[str]) -> None:
        if found := list(paths):
            self.fs.rm(found)

    def remove_tree(self, path: str) -> None:
        self.fs.rm(path, recursive=True)


def local_mark(status: os.stat_result) -> str:
    """The mark of a local file."""
    return f"{status.st_mtime_ns:x}-{status.st_ino:x}"


def read_small(path: str, size: int) -> bytes:
    """The content of a local file of ``size`` bytes, few of them; one byte more of a file that is larger.

    Raises:
        OSError: as the operating system says.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, size + 1)
    finally:
        os.close(descriptor)
