"""Replaced and evicted instances on HDFS: removed a while after they were moved out of their place.

A reader that has listed the folder would find its files gone if they were removed at once. They wait as
``STAGING/replaced/SECONDS.NAME`` or ``STAGING/evicted/SECONDS.NAME``, named after when they were taken.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import suppress

from falcon_assets.storage.cluster_store import ClusterStore


class HdfsSetAside:
    def __init__(self, store: ClusterStore, name: str) -> None:
        self._fs, self.folder = store.fs, f"{store.staging}/{name}"

    def take(self, place: str) -> bool:
        """Moves ``place`` into the folder, in one step; returns whether it was there."""
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
        """Removes what has been out of its place for ``patience`` seconds; ``waits`` until all of it has."""
        for place, taken in list(self._waiting()):
            left = min(max(taken + patience - time.time(), 0.0), patience)
            if left and not waits:
                continue
            time.sleep(left)
            with suppress(OSError):  # others are faster, or have not given the permission
                self._fs.rm(place, recursive=True)

    @property
    def is_empty(self) -> bool:
        return next(self._waiting(), None) is None

    def _waiting(self) -> Iterator[tuple[str, float]]:
        with suppress(FileNotFoundError):
            for place in sorted(self._fs.ls(self.folder, detail=False)):
                seconds = str(place).rpartition("/")[2].rpartition(".")[0]
                with suppress(ValueError):
                    yield place, float(seconds)


def replaced(store: ClusterStore) -> HdfsSetAside:
    return HdfsSetAside(store, "replaced")


def evicted(store: ClusterStore) -> HdfsSetAside:
    return HdfsSetAside(store, "evicted")
