"""Instances on HDFS."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import datetime

from falcon_assets.errors import StorageError
from falcon_assets.planning.eviction import StoredVersion
from falcon_assets.storage.copying.copy_target import REPLICATING, CopyRules
from falcon_assets.storage.errors import driver_explained
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.kinds.file_storage import FileStorage
from falcon_assets.storage.kinds.hdfs.copy_target import HdfsCopyTarget
from falcon_assets.storage.kinds.hdfs.kept_versions import HdfsVersions
from falcon_assets.storage.kinds.hdfs.publication import HdfsPublication
from falcon_assets.storage.kinds.hdfs.set_aside import evicted
from falcon_assets.storage.kinds.removing import FileRemoval, Removal
from falcon_assets.storage.kinds.storage_kind import KEEPS_NONE, READERS_SECONDS, InstancePublication, StorageKind
from falcon_assets.storage.local_staging import LocalStaging
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.staging import copies_folder


class HdfsRemoval(FileRemoval):
    """Moves data aside in one step; a run that writes there puts its instance into the place afterwards."""

    def set_aside(self, place: str) -> None:
        if not evicted(self._store).take(place):
            self._store.require_root(afresh=True)  # else nobody knows whether it went

    def _is_pruned(self, folder: str) -> bool:
        try:
            self._fs.rmdir(folder)  # which is refused where something is in it
        except FileNotFoundError:
            raise
        except OSError:
            return False
        return True


_OUTPUT = "version"


class HdfsStorage(FileStorage):
    """Publishes and removes by renames of the namenode; of two runs that write the same, the later one wins.

    Removed data stays aside for a minute or two, for those who are reading it.
    """

    def publish(
        self, key: str, outputs: Mapping[str, OutputTarget], staging: LocalStaging | None = None
    ) -> AbstractContextManager[InstancePublication]:
        return HdfsPublication(self.store, key, outputs)

    def copy_target(self, output: OutputTarget, source: str, rules: CopyRules = REPLICATING) -> HdfsCopyTarget:
        self.store.require_root(claims=True)
        return HdfsCopyTarget(self.store, output, source, rules)

    def kept_versions(self, feed: str, instance: datetime | None = None) -> list[StoredVersion]:
        with driver_explained(self.store.cluster.name, f"list the versions of {feed}"):
            return list(HdfsVersions(self.store).of_feed(feed, instance))

    def restore(
        self, key: str, output: OutputTarget, version: str, *, dry_run: bool = False
    ) -> tuple[DataVersion, bool]:
        keeps, versions, store = output.keeps, HdfsVersions(self.store), self.store
        if keeps is None:
            raise StorageError(f"{key}: {KEEPS_NONE}")
        with (
            driver_explained(store.cluster.name, f"restore {output.path}"),
            HdfsPublication(store, key, {_OUTPUT: output}) as publication,
        ):
            if self.has(f"{output.path}/{output.flag}" if output.flag else output.path):
                present = self.version(output.path, output.flag)
                if present.version == version:
                    return present, False
            kept = next((one for one in versions.of_feed(keeps.feed, keeps.instance) if one.version == version), None)
            if kept is None:
                raise StorageError(f"{key}: there is no version {version}: it was not kept, or went already")
            found = self.version(kept.path, output.flag)
            if found.version != version:
                where = store.path(kept.path)
                raise StorageError(
                    f"{key}: what lies at {where} is not version {version} any more: somebody changed it"
                )
            if not dry_run:
                if store.fs.exists(copies := copies_folder(store, output.path)):
                    store.files.remove_tree(copies)
                publication.commit_kept(_OUTPUT, versions.name(keeps, version), found)
        return found, True

    def move(self, path: str, target: StorageKind, target_path: str) -> bool:
        here, there = self.store, target.store
        if not isinstance(target, HdfsStorage) or here.fs.unstrip_protocol("") != there.fs.unstrip_protocol(""):
            return False
        place = there.path(target_path)
        there.fs.mkdir(place.rpartition("/")[0])
        try:
            here.fs.mv(here.path(path), place)
        except FileExistsError:
            return False
        return True

    def removal(self, flag: str | None) -> Removal:
        return HdfsRemoval(self.store, flag)

    def purge(self, patience: float = READERS_SECONDS) -> None:
        evicted(self.store).purge(patience, waits=True)

    def is_purged(self) -> bool:
        return evicted(self.store).is_empty
