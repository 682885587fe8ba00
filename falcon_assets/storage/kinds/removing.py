"""How instances leave a store of some kind."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from falcon_assets.errors import StorageError
from falcon_assets.planning.eviction import StoredLocation
from falcon_assets.storage.cluster_store import ClusterStore

_STEPS = frozenset(("", ".", ".."))
"""What leads nowhere, or up."""


class Removal(Protocol):
    """How a location leaves a store of some kind."""

    def place(self, location: StoredLocation) -> str:
        """Where the location is, as the other methods take it.

        Raises:
            StorageError: it is not one that may be touched.
        """

    def held(self, location: StoredLocation) -> AbstractContextManager[str]:
        """Gives its place, and keeps others from writing there meanwhile, where the store can.

        Raises:
            StorageError: somebody does, or as :meth:`place`.
        """

    def measure(self, place: str) -> tuple[int, int]:
        """How many files are there, and their total size; nothing where it went already."""

    def remove(self, location: StoredLocation, place: str) -> None:
        """Removes the location, flag first or all at once, and the folders that it leaves empty.

        With the data goes what its replication staged, and what that knows of it.
        """

    def set_aside(self, place: str) -> None:
        """Takes what is there away, if it still is: in one step, where the store can."""


def parent_and_name(store: ClusterStore, location: StoredLocation) -> tuple[str, str]:
    """The folder that holds the location, below the root as the location is, and its name there.

    Raises:
        StorageError: the location is not strictly below its prefix; a bad record must never cost anybody's data.
    """
    parent, _, name = location.path.rpartition("/")
    below = location.path[len(location.prefix) :].split("/")
    if not parent.startswith(location.prefix) or below[0] or len(below) < 2 or not _STEPS.isdisjoint(below[1:]):
        where = f"cluster {store.cluster.name!r}: cannot evict {location.place!r}"
        raise StorageError(f"{where}: it is not below {location.prefix or '/'}")
    return parent, name
