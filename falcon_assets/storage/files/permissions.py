"""The permission of an ``acl``, applied to published data."""

from __future__ import annotations

import os
from pathlib import Path


def apply_permission(path: Path, permission: str | None) -> None:
    """Gives ``path`` and everything in it the octal mode ``permission``; None and ``*`` change nothing.

    As in Hadoop, files get no execute bits. The owner keeps all rights to folders, and may read and write files.
    """
    if permission is None or permission == "*":
        return
    mode = int(permission, 8)
    _apply(path, mode)
    for parent, folders, files in os.walk(path):
        for name in [*folders, *files]:
            _apply(Path(parent, name), mode)


def _apply(path: Path, mode: int) -> None:
    if path.is_symlink():
        return
    path.chmod(mode | 0o700 if path.is_dir() else mode & 0o666 | 0o600)
