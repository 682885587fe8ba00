"""The socket of the embedded PostgreSQL: a short path in a folder that only its own user can enter."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from falcon_assets.errors import SettingsError

_PLAIN = re.compile(r"[A-Za-z0-9/._+-]+")
"""PostgreSQL and libpq take a comma for the end of a folder's name."""
_LONGEST = 103 - len("/.s.PGSQL.5432.lock")
"""Limit of socket paths: 108 bytes on Linux, 104 on macOS, with the final zero."""


def socket_folder(data: Path, runtime: Path | None, user: int, group: int) -> Path:
    """Returns a folder for the server's socket: the data folder, if its path is short enough, else a new one.

    ``runtime`` is XDG_RUNTIME_DIR; ``user`` and ``group`` are the server's: this process's own, unless it is root.

    Raises:
        SettingsError: there is no folder that other users can neither enter nor replace.
    """
    if _fits(data):
        return data
    found = data.stat()
    digest = hashlib.sha256(f"{data}\0{found.st_dev}\0{found.st_ino}".encode()).hexdigest()[:12]
    refused = []
    for base in _bases(runtime, user):
        folder = base / f"falcon-{user}-{digest}"
        if _fits(folder) and _nobody_replaces_in(base):
            with suppress(OSError):
                if _own(folder, user, group):
                    return folder
            refused.append(str(folder))
    raise SettingsError(
        f"the path of {data} is too long or too unusual for the socket of the embedded PostgreSQL, and there is no "
        f"other folder that only its user can enter{': not ' if refused else ''}{', not '.join(refused)}; choose a "
        "short FALCON_HOME, remove what lies there, or use another server with FALCON_DATABASE_URL"
    )


def _fits(folder: Path) -> bool:
    return len(os.fsencode(folder)) <= _LONGEST and _PLAIN.fullmatch(str(folder)) is not None


def _bases(runtime: Path | None, user: int) -> Iterator[Path]:
    """Root's server has a user of its own, who cannot enter root's XDG_RUNTIME_DIR."""
    if user != os.geteuid():
        yield Path("/run")
    elif runtime is not None:
        yield runtime
    yield from dict.fromkeys((Path(tempfile.gettempdir()), Path("/tmp")))  # noqa: S108 - its folders are verified


def _nobody_replaces_in(base: Path) -> bool:
    """Whether no other user but root can rename or remove a folder that a user creates in ``base``."""
    with suppress(OSError):
        real = base.resolve(strict=True)
        return all(_protected(folder.stat()) for folder in (real, *real.parents))
    return False


def _protected(found: os.stat_result) -> bool:
    others_write = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX
    return stat.S_ISDIR(found.st_mode) and found.st_uid in (0, os.geteuid()) and not others_write


def _own(folder: Path, user: int, group: int) -> bool:
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)  # a link of somebody else's is no folder
    try:
        if os.fstat(opened).st_uid == os.geteuid() != user:
            os.fchown(opened, user, group)
        found = os.fstat(opened)
        return found.st_uid == user and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    finally:
        os.close(opened)
