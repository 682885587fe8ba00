"""Evicts instances after a decision; killed at any point, the same call again completes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from falcon_assets.errors import StorageError
from falcon_assets.planning.eviction import StoredInstance, StoredLocation, Verdict
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import explained, explanation
from falcon_assets.storage.eviction.archiving import archive
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.removing import Removal


class Evicted(NamedTuple):
    nominal: datetime
    files: int
    """Removed by this call, without the flag and Hadoop's side files, as in a data version."""
    bytes: int
    error: StorageError | None = None
    """The reason why a part is still there: the same call again resumes."""


def evict(
    store: ClusterStore, verdicts: Iterable[Verdict], flag: str | None, archive_store: ClusterStore | None = None
) -> Iterator[Evicted]:
    """Deletes or archives instances as the recorded verdicts say, one after the other, each on demand.

    Only their locations are touched, and the folders between these and their fixed prefix. On file systems a location
    is moved aside in one step, so that no reader sees a part of it: call :meth:`StorageKind.purge` at the end.
    """
    removals = _Removals(store, flag)
    for verdict in verdicts:
        if verdict.action == "keep":
            continue
        files, size, error = 0, 0, None
        for location in verdict.instance.locations:
            try:
                own, removal = removals.of(location)
                with removal.held(location) as place:
                    measured = removal.measure(place)
                    path = verdict.archive_path(location)
                    if path is not None:
                        archive(own, location.path, (archive_store or store).at(verdict.archive_root), path, flag)
                    removal.remove(location, place)
            except OSError as refusal:
                error = explanation(store.cluster.name, f"evict {location.place}", refusal)
            except StorageError as refusal:
                error = refusal
            if error:
                break
            files, size = files + measured[0], size + measured[1]
        yield Evicted(verdict.instance.nominal, files, size, error)


def measure(store: ClusterStore, instance: StoredInstance, flag: str | None) -> tuple[int, int]:
    """Returns files and bytes of an instance in all its locations, counted as :class:`Evicted` does."""
    removals, files, size = _Removals(store, flag), 0, 0
    for location in instance.locations:
        _, removal = removals.of(location)
        with explained(store.cluster.name, f"measure {location.place}"):
            there = removal.measure(removal.place(location))
        files, size = files + there[0], size + there[1]
    return files, size


def is_untouched(store: ClusterStore, instance: StoredInstance, flag: str | None) -> bool:
    """Whether nothing was removed yet of an instance that was decided on; without a flag false on object stores."""
    first = instance.locations[0]
    with explained(store.cluster.name, f"look at {first.place}"):
        return kind_of(store.at(first.root)).is_untouched(first, flag)


class _Removals:
    def __init__(self, store: ClusterStore, flag: str | None) -> None:
        self._store, self._flag = store, flag
        self._by_root: dict[str | None, tuple[ClusterStore, Removal]] = {}

    def of(self, location: StoredLocation) -> tuple[ClusterStore, Removal]:
        if location.root not in self._by_root:
            own = self._store.at(location.root)
            self._by_root[location.root] = own, kind_of(own).removal(self._flag)
        return self._by_root[location.root]
