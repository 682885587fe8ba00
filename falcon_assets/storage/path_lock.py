"""A lock between processes that dies with its holder."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import lock_descriptor

_POLL_SECONDS = 0.05


@contextmanager
def path_lock(file: Path, timeout: float) -> Iterator[bool]:
    """Holds the lock that ``file`` stands for, and gives True; gives False if others hold it for ``timeout`` seconds.

    The kernel drops the lock when the holder ends, however it ends. The file goes with the last holder, so that
    a staging location does not fill up with one lock file per instance; whoever locked a file that is
    no longer there tries again.

    Raises:
        OSError: the file system cannot make the file or offers no locks.
    """
    descriptor = _acquire(file, timeout)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            file.unlink(missing_ok=True)
            os.close(descriptor)


def _acquire(file: Path, timeout: float) -> int | None:
    deadline = time.monotonic() + timeout
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
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


def _is_at(descriptor: int, file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), file.stat())
    except FileNotFoundError:
        return False
