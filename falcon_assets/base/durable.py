"""Writes that survive a power cut."""

from __future__ import annotations

import os
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
            if not child.is_symlink() and (child.is_dir() or child.stat().st_size):
                sync(child)
    sync(path)


def make_folders(path: Path) -> None:
    missing = [path]
    while not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        sync(folder.parent)
