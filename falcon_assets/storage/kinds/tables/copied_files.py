"""The files of partitions, as copies read them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from falcon_assets.errors import StorageError
from falcon_assets.planning.replication.copy_plan import ListedFile
from falcon_assets.storage.copying.listed_files import SourceFiles, list_folder
from falcon_assets.storage.errors import explained
from falcon_assets.storage.kinds.tables.version_folders import path_of
from falcon_assets.storage.tables.catalog import Partition
from falcon_assets.storage.tables.table_store import TableStore


def files_of_partitions(
    store: TableStore, partitions: Mapping[str, Partition], left_out: Callable[[str], bool]
) -> SourceFiles:
    """The files of an instance.

    Args:
        store: The tables.
        partitions: What the instance is, by the folder that each has in a copy; "" for one that is all of it.
        left_out: Names of files and folders that do not count.

    Raises:
        StorageError: a partition lies on no file system of this machine, or cannot be read.
    """
    if "" in partitions:
        return _files_of(store, partitions[""], left_out)
    files: dict[str, ListedFile] = {}
    elsewhere: dict[str, str] = {}
    for folder, one in partitions.items():
        found = _files_of(store, one, left_out)
        files |= {f"{folder}/{name}": file for name, file in found.files.items()}
        elsewhere |= {f"{folder}/{name}": found.path(name) for name in found.files}
    return SourceFiles("", files, elsewhere)


def _files_of(store: TableStore, partition: Partition, left_out: Callable[[str], bool]) -> SourceFiles:
    """Those of a partition, which is a folder, or some files of one."""
    for place in partition.places:
        if not place.startswith("file:"):
            raise StorageError(
                f"cluster {store.cluster.name!r}: the partition lies at {place}, and tables are copied on file:// only"
            )
    places = [str(path_of(place)) for place in partition.places]
    if not places:
        return SourceFiles("", {})
    with explained(store.cluster.name, f"list {places[0]}"):
        if len(places) == 1 and store.fs.isdir(places[0]):
            return SourceFiles(places[0], list_folder(store, places[0], None, left_out))
        base = os.path.commonpath([place.rpartition("/")[0] for place in places])
        sizes = {place[len(base) + 1 :]: (int(store.fs.size(place)), store.files.version(place)) for place in places}
        return SourceFiles(base, {name: ListedFile(*file) for name, file in sizes.items()})
