"""Versions of partitions that nobody reads any more: they go a day after they were replaced or dropped."""

from __future__ import annotations

from falcon_assets.storage.kinds.tables.kept_versions import KeptPartitions
from falcon_assets.storage.kinds.tables.version_folders import GRACE_SECONDS, VersionFolders, path_of
from falcon_assets.storage.tables.catalog import TableCatalog


def remove_old(
    catalog: TableCatalog, database: str, table: str, versions: VersionFolders, grace: float = GRACE_SECONDS
) -> None:
    """Removes versions that were replaced or dropped long ago, and what killed runs left.

    Args:
        catalog: Says what is of any partition after all.
        database: Of the table.
        table: Is there.
        versions: Its versions.
        grace: For so many seconds somebody may still be reading them.

    Raises:
        StorageError: the catalog cannot be asked.
        OSError: as the operating system says.
    """
    old = list(versions.old(grace))
    if not old:
        return
    there = catalog.partitions(database, table, catalog.values(database, table, {}))  # several may share a folder
    places = {path_of(place) for one in there.values() for place in one.places}
    places.update(KeptPartitions(versions).places())  # after the catalog: what is replaced has its note before
    used = {folder for path in places for folder in (path, *path.parents)}
    for one in old:
        if one.folder in used or not places.isdisjoint(one.folder.parents):
            one.note.unlink(missing_ok=True)  # published, or not dropped, before a crash; in use elsewhere; or kept
        else:
            versions.drop(one.folder)
