"""The files of partitions, as copies read them."""

from __future__ import annotations

import os
from collections.abc import Callable

from falcon_assets.errors import StorageError
from falcon_assets.planning.replication.copy_plan import ListedFile
from falcon_assets.storage.copying.listed_files import SourceFiles, list_folder
from falcon_assets.storage.errors import explained
from falcon_assets.storage.kinds.tables.old_versions import path_of
from falcon_assets.storage.tables.catalog import Partition
from falcon_assets.storage.tables.table_store import TableStore


def files_of_partition(store: TableStore, partition: Partition, left_out: Callable[[str], bool]) -> SourceFiles:
    """The files of a partition, which is a folder, or some files of one.

    Raises:
        StorageError: it lies on no file system of this machine, or cannot be read.
    """
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
