"""Partitions on object stores, where Spark reads them: by its connector, or copied to a folder of this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from fsspec.implementations.local import LocalFileSystem

from falcon_assets.base.cancellation import current_cancellation
from falcon_assets.errors import StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.file_copy import Attributes, Throttle
from falcon_assets.storage.files.remote_files import entry_version
from falcon_assets.storage.instances.data_files import is_hidden
from falcon_assets.storage.kinds.objects.spark_urls import spark_url
from falcon_assets.storage.kinds.renaming.file_copy import MountedFileCopy
from falcon_assets.storage.kinds.tables.table_folder import TableFolder
from falcon_assets.storage.local_staging import LocalStaging
from falcon_assets.storage.tables.catalog import Partition


def within_reach(
    cluster: str,
    held: ExitStack,
    folder: TableFolder | None,
    partitions: Sequence[Partition],
    staging: LocalStaging | None,
) -> list[Partition]:
    """Returns the partitions with places that Spark can read: copies in ``staging`` if it cannot reach the store.

    Raises StorageError also if one changes while it is copied, or a place of the catalog is missing.
    """
    if folder is None:
        return [*partitions]
    store = folder.store
    if store is None or staging is None:
        _require_there(cluster, folder, partitions)
    if store is None:
        return [*partitions]
    if staging is None:
        paths = {place: folder.path(place) for one in partitions for place in one.places}
        urls = {place: spark_url(store, path) if path else place for place, path in paths.items()}
        return [replace(one, places=tuple(urls[place] for place in one.places)) for one in partitions]
    area = held.enter_context(staging.folder())
    return [_copied(store, folder, one, area / str(number)) for number, one in enumerate(partitions)]


def _require_there(cluster: str, folder: TableFolder, partitions: Sequence[Partition]) -> None:
    every = [(one, place, path) for one in partitions for place in one.places if (path := folder.path(place))]
    with ThreadPoolExecutor(folder.store.files.requests if folder.store else 1) as pool:
        there = pool.map(folder.is_there, (path for _, _, path in every))
        if lost := next((one for one, is_there in zip(every, there, strict=True) if not is_there), None):
            raise _lost(cluster, *lost[:2])


def _lost(cluster: str, one: Partition, place: str) -> StorageError:
    """Reports a missing place: read as empty, it would mean that there are no rows."""
    where = f"cluster {cluster!r}: cannot read partition {'/'.join(one.values)}"
    return StorageError(f"{where}: {place} is not there, where the catalog says that it is")


def _copied(store: ClusterStore, folder: TableFolder, one: Partition, area: Path) -> Partition:
    cancellation, listed = current_cancellation(), _listed(store, folder, one)
    copy = MountedFileCopy(store.fs, LocalFileSystem(), Throttle(None), Attributes(), False)
    area.mkdir()

    def bring(number: int, path: str) -> None:
        cancellation.check()
        # Their folders mean nothing: all is said by the catalog.
        copy.copy(path, str(area / f"{number}-{path.rpartition('/')[2]}"), int(listed[path]["size"]))

    with ThreadPoolExecutor(store.files.requests) as pool:
        list(pool.map(bring, range(len(listed)), listed))
    if _versions(_listed(store, folder, one)) != _versions(listed):
        where = f"cluster {store.cluster.name!r}: cannot read partition {'/'.join(one.values)}"
        raise StorageError(f"{where}: its files change while they are read")
    return replace(one, places=(f"file://{area}",))


def _listed(store: ClusterStore, folder: TableFolder, one: Partition) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for place in one.places:
        path = folder.path(place)
        if path is None:
            raise StorageError(f"cluster {store.cluster.name!r}: {place} is on another store than its table")
        entries = store.files.all_below(path)
        if not entries:
            raise _lost(store.cluster.name, one, place)
        for entry in entries:
            name = str(entry["name"])
            if not any(map(is_hidden, name.removeprefix(path).strip("/").split("/"))):
                found[name] = entry
    return found


def _versions(listed: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[int, str]]:
    return {name: (int(entry["size"]), entry_version(entry)) for name, entry in listed.items()}
