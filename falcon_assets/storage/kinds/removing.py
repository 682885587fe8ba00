"""Removal of instances from a store of some kind."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import Protocol

from falcon_assets.errors import StorageError
from falcon_assets.planning.eviction import StoredLocation
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.files.file_access import is_side_file
from falcon_assets.storage.staging import copies_folder

_STEPS = frozenset(("", ".", ".."))


class Removal(Protocol):
    def place(self, location: StoredLocation) -> str:
        """Returns the location for the other methods; raises StorageError if it may not be touched."""

    def held(self, location: StoredLocation) -> AbstractContextManager[str]:
        """Gives the place, and keeps writers away, if the store can; raises StorageError if one is there."""

    def measure(self, place: str) -> tuple[int, int]: ...

    def remove(self, location: StoredLocation, place: str) -> None:
        """Removes the location, flag first or all at once, with folders left empty, and staged replications of it."""

    def set_aside(self, place: str) -> None:
        """Removes what is there, if any: in one step, if the store can."""


class FileRemoval(Removal):
    """Removes instances that are files, from a store without locks: no writer is kept away."""

    def __init__(self, store: ClusterStore, flag: str | None) -> None:
        self._store, self._fs, self._flag = store, store.fs, flag

    @abstractmethod
    def _is_pruned(self, folder: str) -> bool:
        """Removes a folder with nothing in it; False: something is. FileNotFoundError: it has just gone."""

    def place(self, location: StoredLocation) -> str:
        parent_and_name(self._store, location)
        return self._store.path(location.path)

    @contextmanager
    def held(self, location: StoredLocation) -> Iterator[str]:
        self._store.files.refresh()
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
                if not self._is_pruned(folder):
                    return
            except FileNotFoundError:
                continue  # went in a pass that was killed, or with another instance

    @cached_property
    def _has_copies(self) -> bool:
        return bool(self._fs.exists(f"{self._store.staging}/copies"))


def parent_and_name(store: ClusterStore, location: StoredLocation) -> tuple[str, str]:
    """Raises StorageError if the location is not strictly below its prefix; a bad record must never cost data."""
    parent, _, name = location.path.rpartition("/")
    below = location.path[len(location.prefix) :].split("/")
    if not parent.startswith(location.prefix) or below[0] or len(below) < 2 or not _STEPS.isdisjoint(below[1:]):
        where = f"cluster {store.cluster.name!r}: cannot evict {location.place!r}"
        raise StorageError(f"{where}: it is not below {location.prefix or '/'}")
    return parent, name
