"""Moving an instance to another place of its file system, in one step."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def moved(original: Path, place: Path) -> bool:
    """Moves it; False, and nothing done, where something is there, it holds links, or that is another file system.

    Raises:
        OSError: as the operating system says.
    """
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


def _has_links(original: Path) -> bool:
    """Whether a move might make links lead elsewhere."""
    return any(
        Path(parent, name).is_symlink() for parent, folders, files in os.walk(original) for name in [*folders, *files]
    )
