"""Restores a kept version of an instance: the catalog gets its former partitions."""

from __future__ import annotations

from collections.abc import Sequence

from falcon_assets.errors import StorageError
from falcon_assets.model.table_uri import TableUri
from falcon_assets.storage.errors import driver_explained
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.kinds.storage_kind import KEEPS_NONE
from falcon_assets.storage.kinds.tables.instance_version import version_of
from falcon_assets.storage.kinds.tables.kept_versions import KeptPartitions
from falcon_assets.storage.kinds.tables.version_folders import VersionFolders
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.tables.catalog import NewPartition, Partition
from falcon_assets.storage.tables.table_store import TableStore


def restored(
    store: TableStore, key: str, output: OutputTarget, version: str, present: Sequence[Partition], *, dry_run: bool
) -> tuple[DataVersion, bool]:
    of, uri, catalog = output.keeps, TableUri.parse(output.path), store.catalog
    if of is None:
        raise StorageError(f"{key}: {KEEPS_NONE}")
    if present and (now := version_of(present)).version == version:
        return now, False
    layout = catalog.layout(uri.database, uri.table)
    if layout is None:
        raise StorageError(f"{key}: there is no table {uri.name} at {catalog.endpoint}")
    with driver_explained(store.cluster.name, f"restore {output.path}"):
        versions = VersionFolders.of(store, layout)
        kept = KeptPartitions(versions)
        old = kept.get(of, version)
        if old is None:
            raise StorageError(f"{key}: there is no version {version}: it was not kept, or went already")
        cannot = f"{key}: version {version} cannot be restored"
        if lost := old.lost(versions.folder):
            raise StorageError(
                f"{cannot}: {lost[0]} is not there any more: somebody removed it, by expiring snapshots of the "
                "table or otherwise"
            )
        if other := {one.format for one in old.partitions} - {layout.format}:
            raise StorageError(f"{cannot}: it is in {min(other)}, and table {uri.name} is in {layout.format} now")
        if dry_run:
            return version_of(old.partitions), True
        before = {one.values: one for one in present}
        new = {one.values: NewPartition(one.places, parameters=one.parameters) for one in old.partitions}
        # In Hive, with all of its parameters, the time of its last change among them, it has the version that it had.
        with kept.replacing(of, output.path, before, new):
            done = catalog.switch_all(uri.database, uri.table, new, {}, before)
        kept.forget(of, version)
    return version_of([*done.values()]), True
