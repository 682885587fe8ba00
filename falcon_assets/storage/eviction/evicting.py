"""Eviction: instances that were decided on leave a cluster; killed at any point, the same call again completes it."""

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
    """What became of one instance."""

    nominal: datetime
    files: int
    """How many files went now; the flag and Hadoop's side files do not count, as in a data version."""
    bytes: int
    """Their total size."""
    error: StorageError | None = None
    """Why something of it is still there: the same call again goes on with it."""


def evict(
    store: ClusterStore, verdicts: Iterable[Verdict], flag: str | None, archive_store: ClusterStore | None = None
) -> Iterator[Evicted]:
    """Deletes or archives instances as the verdicts say, one after the other, each as it is asked for.

    Verdicts to keep are passed over. Nothing is touched but the locations of the others and the folders between them
    and their fixed prefix. On file systems what goes is moved aside in one step, so that nobody sees a part of it:
    call :meth:`falcon_assets.storage.kinds.storage_kind.StorageKind.purge` at the end.

    Args:
        store: One of the stores where the instances lie: locations say which of its roots they are below.
        verdicts: Recorded already, so that they are known after a crash.
        flag: Name of the feed's availability flag.
        archive_store: One of the stores of the cluster that is archived on; None: it is that of ``store``.
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
    """How many files an instance has in all its locations, and their total size, counted as :class:`Evicted` does.

    Raises:
        StorageError: they cannot be listed.
    """
    removals, files, size = _Removals(store, flag), 0, 0
    for location in instance.locations:
        _, removal = removals.of(location)
        with explained(store.cluster.name, f"measure {location.place}"):
            there = removal.measure(removal.place(location))
        files, size = files + there[0], size + there[1]
    return files, size


def is_untouched(store: ClusterStore, instance: StoredInstance, flag: str | None) -> bool:
    """Whether nothing was removed yet of an instance that was decided on.

    On file systems its first location goes in one step; elsewhere the flag goes first, and without a flag the whole
    cannot be told from a part: it counts as touched then.

    Raises:
        StorageError: the store cannot be asked.
    """
    first = instance.locations[0]
    with explained(store.cluster.name, f"look at {first.place}"):
        return kind_of(store.at(first.root)).is_untouched(first, flag)


class _Removals:
    """The store and the removal for each location, made once for each root."""

    def __init__(self, store: ClusterStore, flag: str | None) -> None:
        self._store, self._flag = store, flag
        self._by_root: dict[str | None, tuple[ClusterStore, Removal]] = {}

    def of(self, location: StoredLocation) -> tuple[ClusterStore, Removal]:
        if location.root not in self._by_root:
            own = self._store.at(location.root)
            self._by_root[location.root] = own, kind_of(own).removal(self._flag)
        return self._by_root[location.root]
