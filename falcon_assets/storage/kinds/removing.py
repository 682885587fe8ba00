"""Removal of instances from a store of some kind."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from falcon_assets.errors import StorageError
from falcon_assets.planning.eviction import StoredLocation
from falcon_assets.storage.cluster_store import ClusterStore

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


def parent_and_name(store: ClusterStore, location: StoredLocation) -> tuple[str, str]:
    """Raises StorageError if the location is not strictly below its prefix; a bad record must never cost data."""
    parent, _, name = location.path.rpartition("/")
    below = location.path[len(location.prefix) :].split("/")
    if not parent.startswith(location.prefix) or below[0] or len(below) < 2 or not _STEPS.isdisjoint(below[1:]):
        where = f"cluster {store.cluster.name!r}: cannot evict {location.place!r}"
        raise StorageError(f"{where}: it is not below {location.prefix or '/'}")
    return parent, name
