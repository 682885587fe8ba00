"""Versions of partitions that are no longer read: removed a day after they were replaced or dropped."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.storage.kinds.tables.kept_versions import KeptPartitions
from falcon_assets.storage.kinds.tables.version_folders import GRACE_SECONDS, VersionFolders
from falcon_assets.storage.tables.catalog import TableCatalog


def remove_old(
    catalog: TableCatalog, database: str, table: str, versions: VersionFolders, grace: float = GRACE_SECONDS
) -> None:
    """Removes versions that were replaced or dropped ``grace`` seconds ago, and remains of killed runs."""
    old = list(versions.old(grace))
    if not old:
        return
    there = catalog.partitions(database, table, catalog.values(database, table, {}))  # several may share a folder
    every = (versions.folder.path(place) for one in there.values() for place in one.places)
    places = {place for place in every if place}
    places.update(KeptPartitions(versions).places())  # after the catalog: what is replaced has its note before
    used = {folder for path in places for folder in _with_parents(path)}
    for one in old:
        if one.place in used or not places.isdisjoint(_with_parents(one.place)):
            versions.folder.remove(one.note)  # published, or not dropped, before a crash; in use elsewhere; or kept
        else:
            versions.drop(one.place)


def _with_parents(path: str) -> Iterator[str]:
    while path.strip("/"):
        yield path
        path = path.rpartition("/")[0]
