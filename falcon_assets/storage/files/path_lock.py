"""A lock between processes that dies with its holder."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import lock_descriptor

from falcon_assets.base.file_locks import opened

_POLL_SECONDS = 0.05


@contextmanager
def path_lock(file: Path | str, timeout: float) -> Iterator[bool]:
    """Holds the lock of ``file`` and gives True; gives False if others hold it for ``timeout`` seconds.

    The kernel drops the lock when the holder ends, in any way; the last holder deletes the file.
    """
    descriptor = acquire(file, timeout)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            release(descriptor, file)


def acquire(file: Path | str, timeout: float) -> int | None:
    deadline = time.monotonic() + timeout
    while True:
        descriptor = opened(file)
        try:
            if lock_descriptor(descriptor, blocking=False) and _is_at(descriptor, file):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if time.monotonic() >= deadline:
            return None
        time.sleep(_POLL_SECONDS)


def release(descriptor: int, file: Path | str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(file)  # noqa: PTH108 - see acquire
    os.close(descriptor)


def _is_at(descriptor: int, file: Path | str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(file))  # noqa: PTH116 - see acquire
    except FileNotFoundError:
        return False
