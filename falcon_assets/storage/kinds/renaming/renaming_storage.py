"""Instances on file systems whose rename is atomic."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path

from falcon_assets.errors import StorageError
from falcon_assets.planning.eviction import StoredVersion
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_target import REPLICATING, CopyRules
from falcon_assets.storage.errors import explained
from falcon_assets.storage.instances.data_version import DataVersion, fingerprint
from falcon_assets.storage.kinds.file_storage import FileStorage
from falcon_assets.storage.kinds.removing import Removal
from falcon_assets.storage.kinds.renaming.copy_target import RenamingCopyTarget
from falcon_assets.storage.kinds.renaming.kept_versions import KeptVersions
from falcon_assets.storage.kinds.renaming.moving import link_or_copy, moved
from falcon_assets.storage.kinds.renaming.publication import RenamePublication
from falcon_assets.storage.kinds.renaming.removal import RenameRemoval
from falcon_assets.storage.kinds.renaming.set_aside import evicted, replaced
from falcon_assets.storage.kinds.storage_kind import KEEPS_NONE, READERS_SECONDS, InstancePublication, StorageKind
from falcon_assets.storage.local_staging import LocalStaging
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.staging import copies_folder

_OUTPUT = "version"


def restored(
    store: ClusterStore, key: str, output: OutputTarget, version: str, *, dry_run: bool
) -> tuple[DataVersion, bool]:
    """Removes staged replications of the instance, too: they were planned for what is replaced now."""
    keeps, versions = output.keeps, KeptVersions(store)
    if keeps is None:
        raise StorageError(f"{key}: {KEEPS_NONE}")
    with (
        explained(store.cluster.name, f"restore {output.path}"),
        RenamePublication(store, key, {_OUTPUT: output}) as publication,
    ):
        marker = f"{output.path}/{output.flag}" if output.flag else output.path
        if os.path.lexists(store.path(marker)):
            present = fingerprint(store, output.path, output.flag)
            if present.version == version:
                return present, False
        if version not in (one.version for one in versions.of_feed(keeps.feed, keeps.instance)):
            raise StorageError(f"{key}: there is no version {version}: it was not kept, or went already")
        place, staging = versions.place(versions.name(keeps, version)), publication.staging(_OUTPUT)
        if place.is_dir():
            shutil.copytree(place, staging, symlinks=True, copy_function=link_or_copy)
        else:
            link_or_copy(str(place), staging)
        found = fingerprint(store, os.path.relpath(staging, store.path("")), output.flag)
        if found.version != version:
            raise StorageError(f"{key}: what lies at {place} is not version {version} any more: somebody changed it")
        if not dry_run:
            if os.path.lexists(copies := copies_folder(store, output.path)):
                replaced(store).take(copies)
            publication.commit(_OUTPUT)
    return found, True


class RenamingStorage(FileStorage):
    """Publishes and removes by renames, with locks that die with their holder.

    Removed data stays aside for a minute or two, for those who are reading it.
    """

    def publish(
        self, key: str, outputs: Mapping[str, OutputTarget], staging: LocalStaging | None = None
    ) -> AbstractContextManager[InstancePublication]:
        return RenamePublication(self.store, key, outputs)

    def copy_target(self, output: OutputTarget, source: str, rules: CopyRules = REPLICATING) -> RenamingCopyTarget:
        return RenamingCopyTarget(self.store, output, source, rules)

    def kept_versions(self, feed: str, instance: datetime | None = None) -> list[StoredVersion]:
        with explained(self.store.cluster.name, f"list the versions of {feed}"):
            return list(KeptVersions(self.store).of_feed(feed, instance))

    def restore(
        self, key: str, output: OutputTarget, version: str, *, dry_run: bool = False
    ) -> tuple[DataVersion, bool]:
        return restored(self.store, key, output, version, dry_run=dry_run)

    def move(self, path: str, target: StorageKind, target_path: str) -> bool:
        is_near = isinstance(target, RenamingStorage) and target.store.cluster.name == self.store.cluster.name
        return is_near and moved(Path(self.store.path(path)), Path(target.store.path(target_path)))

    def removal(self, flag: str | None) -> Removal:
        return RenameRemoval(self.store, flag)

    def purge(self, patience: float = READERS_SECONDS) -> None:
        evicted(self.store).purge(patience, waits=True)

    def is_purged(self) -> bool:
        return evicted(self.store).is_empty
