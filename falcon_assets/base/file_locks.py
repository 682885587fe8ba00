"""Locks between processes, on files that only their user can open; the kernel drops them with their holder."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import lock_descriptor

from falcon_assets.errors import LockedError

PRIVATE_FOLDER = 0o700
_PRIVATE_FILE = 0o600
_SHARED_FILE = 0o660
_POLL_SECONDS = 0.05
_TABLE = Path("/proc/locks")
_LONGEST_COMMAND = 100
_ADVICE = "wait until it has ended, or end it, and try again"


@contextmanager
def locked(file: Path, seconds: float, doing: str) -> Iterator[None]:
    """Locks ``file``, made if missing, for one thread at a time; ``doing`` is for others: ``starts the server``.

    Raises LockedError, which names the holder, after ``seconds``, and OSError if the file system has no locks.
    """
    descriptor = opened(file)
    try:
        give_up = time.monotonic() + seconds
        while not lock_descriptor(descriptor, blocking=False):
            if time.monotonic() >= give_up:
                raise LockedError(f"{who_locks(file)} {doing}, and has held {file} for {seconds:.0f} s: {_ADVICE}")
            time.sleep(_POLL_SECONDS)  # the kernel could wake us, but then nothing would bound the wait
        yield
    finally:
        os.close(descriptor)


def opened(file: Path | str, *, new: bool = False) -> int:
    """Opens a file to be locked: for its user alone, also if an earlier version opened it to all; OSError for links.

    A process that can open a file, if only for reading, can lock it and block all others. So it is open to a group only
    in a folder that this group may write: its members can do as they like there anyway.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_EXCL if new else 0)
    descriptor = os.open(file, flags, _PRIVATE_FILE)
    found = os.fstat(descriptor)
    folder = os.stat(os.path.dirname(file) or ".")  # noqa: PTH116, PTH120 - for many thousands at once
    shares = folder.st_mode & stat.S_IWGRP and folder.st_gid == found.st_gid
    mode = _SHARED_FILE if shares else _PRIVATE_FILE
    if stat.S_IMODE(found.st_mode) != mode and found.st_uid == os.geteuid():
        with suppress(OSError):  # a file system without modes
            os.fchmod(descriptor, mode)
    return descriptor


def who_locks(file: Path | str) -> str:
    """Returns ``process 123 (of alice: falcon run)``, or the command that finds the holder if the system names none."""
    import psutil  # noqa: PLC0415 - every command locks something, and hardly any waits in vain

    number = _holder(file)
    if number is None:
        return f"another process (lsof {file} names it)"
    try:
        process = psutil.Process(number)
        command = " ".join(process.cmdline()) or process.name()
        return f"process {number} (of {process.username()}: {_shortened(command)})"
    except psutil.Error:
        return f"process {number}"


def _holder(file: Path | str) -> int | None:
    """Reads Linux's list of locks: number, FLOCK, ADVISORY, WRITE, process, major:minor:inode, from, to."""
    with suppress(OSError, ValueError):
        inode = str(os.stat(file).st_ino)  # noqa: PTH116 - a text or a path
        for line in _TABLE.read_text().splitlines():
            fields = line.split()
            if fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == inode and int(fields[4]) > 0:
                return int(fields[4])
    return None


def _shortened(command: str) -> str:
    shown = "".join(char if char.isprintable() else "?" for char in command)
    return shown if len(shown) <= _LONGEST_COMMAND else f"{shown[:_LONGEST_COMMAND]} ..."
