"""Versions of partitions that nobody reads any more: they go a day after they were replaced or dropped."""

from __future__ import annotations

from pathlib import Path

from falcon_assets.storage.kinds.tables.version_folders import GRACE_SECONDS, VersionFolders
from falcon_assets.storage.tables.catalog import TableCatalog


def remove_old(
    catalog: TableCatalog, database: str, table: str, versions: VersionFolders, grace: float = GRACE_SECONDS
) -> None:
    """Removes versions that were replaced or dropped long ago, and what killed runs left.

    Args:
        catalog: Says what is a partition after all.
        database: Of the table.
        table: Is there.
        versions: Its versions.
        grace: For so many seconds somebody may still be reading them.

    Raises:
        StorageError: the catalog cannot be asked.
        OSError: as the operating system says.
    """
    old = list(versions.old(grace))
    there = catalog.partitions(database, table, list({one.values for one in old}))
    for one in old:
        places = there[one.values].places if one.values in there else ()
        if any(path_of(place) == one.folder or one.folder in path_of(place).parents for place in places):
            one.note.unlink(missing_ok=True)  # the crash came after it was published, or before it was dropped
        else:
            versions.drop(one.folder)


def path_of(place: str) -> Path:
    """The path of a place on a file system."""
    return Path("/" + place.removeprefix("file:").lstrip("/"))
