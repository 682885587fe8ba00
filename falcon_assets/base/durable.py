"""Writes that survive a power cut."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(path: Path) -> None:
    """A file without content has nothing to lose: its name is in the folder."""
    for parent, folders, files in os.walk(path, topdown=False):
        for child in (Path(parent, name) for name in [*files, *folders]):
            found = child.lstat()
            if stat.S_ISDIR(found.st_mode) or (not stat.S_ISLNK(found.st_mode) and found.st_size):
                sync(child)
    sync(path)


def make_folders(path: Path) -> None:
    missing = [path]
    while not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        sync(folder.parent)
