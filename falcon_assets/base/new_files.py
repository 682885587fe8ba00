"""Files that users name for output: the whole text in one step, in place of a regular file or of nothing."""

from __future__ import annotations

import os
import stat
import uuid
from contextlib import suppress
from pathlib import Path

from falcon_assets.errors import SettingsError

_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


def write_file(path: Path, text: str, mode: int | None = None) -> None:
    """Writes a file so that no reader sees a part; the old content stays until then, and if anything fails.

    ``mode`` is set regardless of the umask. Raises SettingsError also for something other than a regular file: a link
    could lead anywhere, and root would replace devices that all programs use.
    """
    try:
        before = _mode_of_regular(path)
        mode = before if mode is None else mode
        new = path.with_name(f".{uuid.uuid4().hex}.new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(new, flags, 0o666)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                if mode is not None:
                    os.fchmod(descriptor, mode)
                os.fsync(descriptor)
            new.replace(path)
        except BaseException:
            with suppress(OSError):
                new.unlink()
            raise
    except (OSError, ValueError) as error:  # ValueError: no name that a file could have
        said = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise SettingsError(f"{path} cannot be written: {said}") from error


def _mode_of_regular(path: Path) -> int | None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "no file")
        raise SettingsError(f"{path} cannot be written: it is {kind}, and only regular files are replaced")
    return stat.S_IMODE(found.st_mode)
