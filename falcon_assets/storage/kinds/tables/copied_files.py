"""The files of partitions, as copies read them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

from falcon_assets.errors import StorageError
from falcon_assets.storage.copying.copy_plan import ListedFile
from falcon_assets.storage.copying.listed_files import SourceFiles, list_folder
from falcon_assets.storage.errors import explained
from falcon_assets.storage.kinds.tables.table_folder import TableFolder
from falcon_assets.storage.tables.catalog import Partition
from falcon_assets.storage.tables.table_store import TableStore


def files_of_partitions(
    store: TableStore, folder: TableFolder | None, partitions: Mapping[str, Partition], left_out: Callable[[str], bool]
) -> SourceFiles:
    """Returns the files of an instance; ``partitions`` by folder in the copy, "" for one that is all of it.

    Raises StorageError if one is on another kind of store than the cluster's files.
    """
    if "" in partitions:
        return _files_of(store, folder, partitions[""], left_out)
    files: dict[str, ListedFile] = {}
    elsewhere: dict[str, str] = {}
    for own, one in partitions.items():
        found = _files_of(store, folder, one, left_out)
        files |= {f"{own}/{name}": file for name, file in found.files.items()}
        elsewhere |= {f"{own}/{name}": found.path(name) for name in found.files}
    return SourceFiles("", files, elsewhere)


def _files_of(
    store: TableStore, folder: TableFolder | None, partition: Partition, left_out: Callable[[str], bool]
) -> SourceFiles:
    places = []
    for url in partition.places:
        place = folder.path(url) if folder and folder.is_on(store) else None
        if place is None:
            where = f"cluster {store.cluster.name!r}: the partition lies at {url}"
            raise StorageError(f"{where}, and tables are copied from where the other files of the cluster lie")
        places.append(place)
    if not places:
        return SourceFiles("", {})
    with explained(store.cluster.name, f"list {places[0]}"):
        if len(places) == 1 and store.fs.isdir(places[0]):
            return SourceFiles(places[0], list_folder(store, places[0], None, left_out))
        found = {place: (int(store.fs.size(place)), store.files.version(place)) for place in places}
        names = dict(zip(_names(places), places, strict=True))
        return SourceFiles("", {name: ListedFile(*found[place]) for name, place in names.items()}, names)


def _names(places: Sequence[str]) -> list[str]:
    """Names the files of a partition in a copy, all in one folder, as theirs mean nothing; the same names each time."""
    named = (place.rpartition("/") for place in places)
    return [f"{hashlib.blake2b(folder.encode(), digest_size=4).hexdigest()}-{name}" for folder, _, name in named]
