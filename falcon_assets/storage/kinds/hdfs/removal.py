"""Removing on HDFS: out of the place at once, flag and all; off the disks a while later."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

from falcon_assets.planning.eviction import StoredLocation
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.instances.data_files import is_side_file
from falcon_assets.storage.kinds.hdfs.set_aside import evicted
from falcon_assets.storage.kinds.removing import parent_and_name
from falcon_assets.storage.staging import copies_folder


class HdfsRemoval:
    def __init__(self, store: ClusterStore, flag: str | None) -> None:
        self._store, self._fs, self._flag, self._area = store, store.fs, flag, evicted(store)

    def place(self, location: StoredLocation) -> str:
        parent_and_name(self._store, location)
        return self._store.path(location.path)

    @contextmanager
    def held(self, location: StoredLocation) -> Iterator[str]:
        """Keeps no run away: a run that writes there puts its instance into the place afterwards."""
        yield self.place(location)

    def measure(self, place: str) -> tuple[int, int]:
        sizes = [
            entry["size"]
            for name, entry in self._fs.find(place, detail=True).items()
            if name != f"{place}/{self._flag}" and not any(map(is_side_file, name[len(place) + 1 :].split("/")))
        ]
        return len(sizes), sum(sizes)

    def remove(self, location: StoredLocation, place: str) -> None:
        self.set_aside(place)
        if location.kind == "data" and self._has_copies:
            self.set_aside(copies_folder(self._store, location.path))
        folder = place
        for _ in range(location.path[len(location.prefix) :].count("/") - 1):
            folder = folder.rpartition("/")[0]
            try:
                self._fs.rmdir(folder)  # which is refused where something is in it
            except FileNotFoundError:
                continue
            except OSError:
                return

    def set_aside(self, place: str) -> None:
        if not self._area.take(place):
            self._store.require_root(afresh=True)  # else nobody knows whether it went

    @cached_property
    def _has_copies(self) -> bool:
        return bool(self._fs.exists(f"{self._store.staging}/copies"))
