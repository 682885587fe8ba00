"""Moves an instance within its file system, in one step, and gives its files a second place."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path


def moved(original: Path, place: Path) -> bool:
    """Moves it; False, and nothing done, if something is there, it holds links, or that is another file system."""
    if os.path.lexists(place) or _has_links(original):
        return False
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        original.rename(place)
    except OSError as error:
        if error.errno == errno.EXDEV:
            return False  # another disk is mounted between them
        raise
    return True


def link_or_copy(here: str, there: str) -> None:
    try:
        os.link(here, there)
    except OSError:
        shutil.copy2(here, there)


def _has_links(original: Path) -> bool:
    """Whether a move might make links lead elsewhere."""
    return any(
        Path(parent, name).is_symlink() for parent, folders, files in os.walk(original) for name in [*folders, *files]
    )
