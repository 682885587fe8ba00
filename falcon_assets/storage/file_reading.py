"""Reading a file of any store in blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from fsspec import AbstractFileSystem
from fsspec.implementations.local import LocalFileSystem

from falcon_assets.storage.checksum import checksum

LOCAL_BLOCK = 128 << 10
"""What a processor's own cache holds three times, so that a block is read, hashed and written before it leaves it."""
SMALL = 64 << 10
"""Files up to this size are read by one call."""
REMOTE_BLOCK = 16 << 20
"""A request for less takes longer to come than to be read."""


def is_local(fs: AbstractFileSystem) -> bool:
    """Whether paths of ``fs`` are those of the operating system."""
    return isinstance(fs, LocalFileSystem)


def blocks(
    fs: AbstractFileSystem, path: str, size: int, at_most: Callable[[int], int] = int
) -> Iterator[bytes | memoryview]:
    """The content of the file in blocks, each of which is good until the next one is asked for.

    Args:
        fs: Where it is.
        path: Its path.
        size: How large it is said to be; one that turns out larger gives more than that, so that it is noticed.
        at_most: Makes the size of blocks smaller.

    Raises:
        OSError: as the store says.
    """
    if is_local(fs):
        yield from _local_blocks(path, at_most(LOCAL_BLOCK))
        return
    step = at_most(REMOTE_BLOCK)
    start = 0
    while start < size:
        block: bytes = fs.cat_file(path, start=start, end=min(start + step, size))
        if not block:
            return
        yield block
        start += len(block)


def _local_blocks(path: str, size: int) -> Iterator[memoryview]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # A small file is read by what it needs: making a large buffer for it would take longer than reading it.
        left = os.fstat(descriptor).st_size + 1
        if left <= SMALL:
            while read := os.read(descriptor, min(left, size)):
                yield memoryview(read)
            return
        buffer = memoryview(bytearray(size))
        while count := os.readv(descriptor, [buffer]):
            yield buffer[:count]
    finally:
        os.close(descriptor)


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


def content_of(fs: AbstractFileSystem, path: str, size: int) -> tuple[int, str]:
    """Size and checksum of the content of a file.

    Args:
        fs: Where it is.
        path: Its path.
        size: How large it is said to be.

    Raises:
        OSError: as the store says.
    """
    digest, total = checksum(), 0
    for block in blocks(fs, path, size):
        digest.update(block)
        total += len(block)
    return total, digest.hexdigest()
