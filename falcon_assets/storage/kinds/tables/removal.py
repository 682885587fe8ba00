"""Removes instances from a table: first the partitions, and their files a day later."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from falcon_assets.errors import StorageError
from falcon_assets.model.table_uri import TableUri
from falcon_assets.planning.eviction import StoredLocation
from falcon_assets.storage.errors import driver_explained
from falcon_assets.storage.kinds.tables.kept_versions import KeptPartitions
from falcon_assets.storage.kinds.tables.version_folders import VersionFolders
from falcon_assets.storage.tables.catalog import Partition
from falcon_assets.storage.tables.table_store import TableStore


class TableRemoval:
    """Drops partitions; :func:`.remove_old` removes their files, but none outside of the folder of the table."""

    def __init__(self, store: TableStore, partitions: Callable[[str], tuple[Partition, ...]]) -> None:
        self._store, self._partitions = store, partitions

    def place(self, location: StoredLocation) -> str:
        if location.kind == "version":
            return location.path
        if not TableUri.parse(location.path).fixed:
            where = f"cluster {self._store.cluster.name!r}: cannot evict {location.place!r}"
            raise StorageError(f"{where}: it is the whole table")
        return location.path

    @contextmanager
    def held(self, location: StoredLocation) -> Iterator[str]:
        """Keeps no run away: the catalog refuses to drop partitions that were replaced meanwhile."""
        yield self.place(location)

    def measure(self, place: str) -> tuple[int, int]:
        found = self._partitions(place)
        return sum(one.files for one in found), sum(one.bytes for one in found)

    def remove(self, location: StoredLocation, place: str) -> None:
        if location.kind != "version":
            self.set_aside(place)
            return
        with driver_explained(self._store.cluster.name, f"evict {place}"):
            self._drop_version(location.prefix)

    def _drop_version(self, note: str) -> None:
        uri = self._store.table
        layout = self._store.catalog.layout(uri.database, uri.table) if uri else None
        if layout is not None:  # else its files went with it
            KeptPartitions(VersionFolders.of(self._store, layout)).drop(note)

    def set_aside(self, place: str) -> None:
        uri, found = TableUri.parse(place), self._partitions(place)
        layout = self._store.catalog.layout(uri.database, uri.table) if found else None
        if layout is None:
            return
        versions = VersionFolders.of(self._store, layout)
        with driver_explained(self._store.cluster.name, f"evict {place}"):
            for one in found:
                for file in one.places:
                    versions.note_dropped(one.values, file)
        self._store.catalog.drop(uri.database, uri.table, found)
