"""Replaced and evicted instances: removed a while after they were moved out of their place.

A reader that opened the folder just before the move still lists it, and would see a part of the old instance (measured:
within a few hundred rewrites, on a busy machine). So they wait until no reader can have them open::

    STAGING/replaced/ATTEMPT/old    what publications replaced
    STAGING/evicted/BATCH/N         what retention evicted: apart, so that no publication has to remove it

The time of the enclosing folder says since when.
"""

from __future__ import annotations

import os
import time
import uuid
from contextlib import suppress
from pathlib import Path

from falcon_assets.storage.cluster_store import ClusterStore

BATCH_LOCK = "lock"


class SetAside:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self) -> None:
        """Makes the folder: :meth:`take` needs no space on the disk then."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)  # who is in the way is named
        self.folder.mkdir(exist_ok=True)

    def take(self, place: str | Path) -> None:
        os.rename(place, self.folder / uuid.uuid4().hex)  # noqa: PTH104 - called for many thousands

    def purge(self, patience: float, *, waits: bool) -> None:
        """Removes what has been out of its place for ``patience`` seconds; ``waits`` until all of it has."""
        for entry in sorted(self.folder.iterdir()) if self.folder.exists() else ():
            with suppress(OSError):  # others are faster, have put more into it, or have not given the permission
                is_folder = entry.is_dir()  # or a file that a full disk had no room to put into one
                places = _entries(entry) if is_folder else []
                if [place.name for place in places] != [BATCH_LOCK]:
                    left = min(max(entry.stat().st_mtime + patience - time.time(), 0.0), patience)
                    if left and not waits:
                        continue
                    time.sleep(left)
                for place in places:
                    _remove_all(place)
                entry.rmdir() if is_folder else entry.unlink()

    @property
    def is_empty(self) -> bool:
        return not self.folder.exists() or next(self.folder.iterdir(), None) is None


def replaced(store: ClusterStore) -> SetAside:
    return SetAside(Path(store.staging) / "replaced")


def evicted(store: ClusterStore) -> SetAside:
    return SetAside(Path(store.staging) / "evicted")


def _remove_all(place: os.DirEntry[str]) -> None:
    """Removes without :func:`shutil.rmtree`'s costly guard against links, as no other process knows the paths."""
    with suppress(OSError):
        if not place.is_dir(follow_symlinks=False):
            os.unlink(place)  # noqa: PTH108 - see above
            return
        for entry in _entries(place):
            _remove_all(entry)
        os.rmdir(place)  # noqa: PTH106 - see above


def _entries(folder: str | os.PathLike[str]) -> list[os.DirEntry[str]]:
    """Returns the entries in their order on the disk: in another one, removing takes a fifth longer on ext4."""
    with os.scandir(folder) as entries:
        return sorted(entries, key=os.DirEntry.inode)
