"""Old instances on their way out of an HDFS: removed a while after they were moved out of their place.

A reader that has listed the folder would find its files gone if they were removed at once. What goes waits as
``STAGING/replaced/SECONDS.NAME`` or ``STAGING/evicted/SECONDS.NAME``, named after when it was taken.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import suppress

from falcon_assets.storage.cluster_store import ClusterStore


class HdfsSetAside:
    """What waits in one of those folders.

    Args:
        store: An HDFS.
        name: Of the folder, in the staging location.
    """

    def __init__(self, store: ClusterStore, name: str) -> None:
        self._fs, self.folder = store.fs, f"{store.staging}/{name}"

    def take(self, place: str) -> bool:
        """Moves what is there into the folder, in one step, if it is still there; whether it was.

        Raises:
            OSError: as the store says.
        """
        for is_made in (False, True):
            try:
                self._fs.mv(place, f"{self.folder}/{time.time():.3f}.{uuid.uuid4().hex}")
            except FileNotFoundError:  # one of the two
                if is_made or not self._fs.exists(place):
                    return False
                self._fs.mkdir(self.folder)
            else:
                break
        return True

    def purge(self, patience: float, *, waits: bool) -> None:
        """Removes what has been out of its place for ``patience`` seconds.

        Args:
            patience: So long readers may still list it.
            waits: Whether to wait until all that is there now has been so for so long. What cannot be removed is left
                to the next call.
        """
        for place, taken in list(self._waiting()):
            left = min(max(taken + patience - time.time(), 0.0), patience)
            if left and not waits:
                continue
            time.sleep(left)
            with suppress(OSError):  # others are faster, or have not given the permission
                self._fs.rm(place, recursive=True)

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits there."""
        return next(self._waiting(), None) is None

    def _waiting(self) -> Iterator[tuple[str, float]]:
        """What waits, and when it was taken: the oldest first."""
        with suppress(FileNotFoundError):
            for place in sorted(self._fs.ls(self.folder, detail=False)):
                seconds = str(place).rpartition("/")[2].rpartition(".")[0]
                with suppress(ValueError):
                    yield place, float(seconds)


def replaced(store: ClusterStore) -> HdfsSetAside:
    """What publications replaced."""
    return HdfsSetAside(store, "replaced")


def evicted(store: ClusterStore) -> HdfsSetAside:
    """What retention evicted."""
    return HdfsSetAside(store, "evicted")
