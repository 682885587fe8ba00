"""Makes many new files survive a power cut, at once."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from falcon_assets.base.durable import sync_tree

if sys.platform == "linux":
    _libc = ctypes.CDLL(None, use_errno=True)
    _libc.sync_file_range.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]


_SYNC_FILE_RANGE_WRITE = 2


def start_writing(descriptor: int, start: int, size: int) -> None:
    """Starts to write that part of an open file to the disk, without waiting.

    Else everything waits in memory for :func:`sync_all`, and the disk idles. It is a hint, which systems may ignore.
    """
    if sys.platform == "linux":
        _libc.sync_file_range(descriptor, start, size, _SYNC_FILE_RANGE_WRITE)


def sync_all(path: str) -> None:
    """Waits for all writes to the file system: a call for each of many small files takes a hundred times as long."""
    if sys.platform != "linux":
        sync_tree(Path(path))
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _libc.syncfs(descriptor):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
    finally:
        os.close(descriptor)
