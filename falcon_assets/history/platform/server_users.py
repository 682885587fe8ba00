"""The processes that use a server, as one locked file each."""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from pathlib import Path

from filelock import lock_descriptor

from falcon_assets.base.file_locks import PRIVATE_FOLDER, opened

_SUFFIX = ".user"


class ServerUsers:
    """The processes that use a server, as files in a folder: a process uses it as long as its file is locked.

    The kernel releases the lock when the process ends, in any way, and cannot confuse reused process ids. A forked
    child shares the lock with its parent, so the file stands for both until both have left. No file is ever rewritten,
    so neither a killed process nor a full disk removes a user.

    Callers must hold a lock around all calls: a file must not be examined between its creation and its locking. The
    parent of the folder must exist.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: Path | None = None
        self._descriptor: int | None = None

    def join(self) -> None:
        """Adds this process; idempotent. Raises OSError if its file can be neither created nor locked."""
        if self._is_there():
            return
        self._folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        self._close()
        self._file = self._folder / f"{os.getpid()}-{uuid.uuid4().hex}{_SUFFIX}"  # the number is for people
        self._descriptor = opened(self._file, new=True)
        lock_descriptor(self._descriptor, blocking=False)

    def leave(self) -> bool:
        """Removes this process; returns whether it was one and none is left."""
        was_there = self._descriptor is not None
        self._close()
        return was_there and not self._is_used()

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)  # and not unlock: a forked child may still hold it
            self._descriptor = None

    def _is_there(self) -> bool:
        if self._descriptor is None or self._file is None:
            return False
        try:
            return os.path.samestat(os.fstat(self._descriptor), self._file.stat())
        except OSError:
            return False

    def _is_used(self) -> bool:
        """Whether any file is locked; unlocked ones are deleted. Files that cannot be opened count as locked."""
        used = False
        for file in list(self._folder.glob(f"*{_SUFFIX}")):
            try:
                descriptor = os.open(file, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            except OSError:
                used = True
                continue
            try:
                if lock_descriptor(descriptor, blocking=False):
                    with suppress(OSError):
                        file.unlink()
                else:
                    used = True
            finally:
                os.close(descriptor)
        return used
