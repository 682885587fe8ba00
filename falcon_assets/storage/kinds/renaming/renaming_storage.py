"""Instances on file systems whose rename is atomic: mounted ones, and HDFS."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from datetime import datetime

from falcon_assets.errors import StorageError
from falcon_assets.planning.eviction import StoredVersion
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_target import REPLICATING, CopyRules, CopyTarget
from falcon_assets.storage.errors import driver_explained
from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.instances.held_data import HeldData
from falcon_assets.storage.instances.publication import InstancePublication
from falcon_assets.storage.kinds.file_storage import FileStorage
from falcon_assets.storage.kinds.removing import Removal
from falcon_assets.storage.kinds.renaming.copy_target import MountedCopyTarget, RenamingCopyTarget
from falcon_assets.storage.kinds.renaming.kept_versions import KeptVersions
from falcon_assets.storage.kinds.renaming.output_swap import OutputSwap
from falcon_assets.storage.kinds.renaming.publication import RenamePublication
from falcon_assets.storage.kinds.renaming.removal import LockingRemoval, RenameRemoval
from falcon_assets.storage.kinds.renaming.set_aside import evicted, held_aside, replaced
from falcon_assets.storage.kinds.storage_kind import KEEPS_NONE, NOTHING_HELD, READERS_SECONDS, StorageKind
from falcon_assets.storage.local_staging import LocalStaging
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.staging import HELD_SECONDS, copies_folder

_OUTPUT = "version"


class RenamingStorage(FileStorage):
    """Publishes and removes by renames, with locks that die with their holder, where the store has such.

    Else, of two runs that write the same, the later one wins. Removed data stays aside for a minute or two, for those
    who are reading it.
    """

    def publish(
        self,
        key: str,
        outputs: Mapping[str, OutputTarget],
        staging: LocalStaging | None = None,
        held: Mapping[str, HeldData] = NOTHING_HELD,
    ) -> AbstractContextManager[InstancePublication]:
        return RenamePublication(self.store, key, outputs, held=held)

    def repair(self, key: str, output: OutputTarget) -> None:
        RenamePublication.recover(self.store, key, output)

    def copy_target(self, output: OutputTarget, source: str, rules: CopyRules = REPLICATING) -> CopyTarget:
        self.store.require_root(claims=True)
        kind = MountedCopyTarget if self._has_locks else RenamingCopyTarget
        return kind(self.store, output, source, rules)

    def has_begun(self, path: str) -> bool:
        swap = OutputSwap(self.store, OutputTarget(path, None), path)
        return any(map(self.store.fs.exists, (swap.folder, swap.held, copies_folder(self.store, path))))

    def kept_versions(self, feed: str, instance: datetime | None = None) -> list[StoredVersion]:
        with driver_explained(self.store.cluster.name, f"list the versions of {feed}"):
            return list(KeptVersions(self.store).of_feed(feed, instance))

    def restore(
        self, key: str, output: OutputTarget, version: str, *, dry_run: bool = False
    ) -> tuple[DataVersion, bool]:
        """Removes staged replications of the instance, too: they were planned for what is replaced now."""
        keeps, versions, store = output.keeps, KeptVersions(self.store), self.store
        if keeps is None:
            raise StorageError(f"{key}: {KEEPS_NONE}")
        with (
            driver_explained(store.cluster.name, f"restore {output.path}"),
            RenamePublication(store, key, {_OUTPUT: output}) as publication,
        ):
            if self.has(f"{output.path}/{output.flag}" if output.flag else output.path):
                present = self.version(output.path, output.flag)
                if present.version == version:
                    return present, False
            kept = next((one for one in versions.of_feed(keeps.feed, keeps.instance) if one.version == version), None)
            if kept is None:
                raise StorageError(f"{key}: there is no version {version}: it was not kept, or is removed already")
            place, found = store.path(kept.path), self.version(kept.path, output.flag)
            if found.version != version:
                raise StorageError(
                    f"{key}: what lies at {place} is not version {version} any more: somebody changed it"
                )
            if not dry_run:
                if store.fs.lexists(copies := copies_folder(store, output.path)):
                    replaced(store).take(copies)
                if not self._has_locks:
                    publication.commit_kept(_OUTPUT, versions.name(keeps, version), found)
                    return found, True
                staging, link = publication.staging(_OUTPUT), store.files.link  # it stays kept until it is published
                if store.fs.isdir(place):
                    shutil.copytree(place, staging, symlinks=True, copy_function=link)
                else:
                    link(place, staging)
                publication.commit(_OUTPUT)
        return found, True

    def move(self, path: str, target: StorageKind, target_path: str) -> bool:
        here, there = self.store, target.store
        if not isinstance(target, RenamingStorage) or not self._is_with(there) or here.files.has_links(here.path(path)):
            return False
        place = there.path(target_path)
        try:
            there.files.make_folder(place.rpartition("/")[0])
            there.files.move(here.path(path), place)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno == errno.EXDEV:
                return False  # another disk is mounted between them
            raise
        return True

    def removal(self, flag: str | None) -> Removal:
        return (LockingRemoval if self._has_locks else RenameRemoval)(self.store, flag)

    def purge(self, patience: float = READERS_SECONDS) -> None:
        evicted(self.store).purge(patience, waits=True)
        held_aside(self.store).purge(HELD_SECONDS, waits=False)

    def is_purged(self) -> bool:
        return evicted(self.store).is_empty

    def kept_aside(self) -> list[tuple[datetime, str]]:
        with driver_explained(self.store.cluster.name, "list what is kept aside"):
            return held_aside(self.store).since()

    def measure_aside(self, place: str) -> int:
        with driver_explained(self.store.cluster.name, f"measure {place}"):
            return int(self.store.fs.du(place))

    def discard_aside(self, place: str) -> None:
        with driver_explained(self.store.cluster.name, f"remove {place}"), suppress(FileNotFoundError):
            area = evicted(self.store)
            area.make()
            area.take_folder(place)  # needs no space

    @property
    def _has_locks(self) -> bool:
        return Ability.LOCK not in self.cannot

    def _is_with(self, other: ClusterStore) -> bool:
        """Whether both are on one file system, as far as that is known without trying."""
        if self._has_locks:
            is_one = other.cluster.name == self.store.cluster.name
        else:
            is_one = other.fs.unstrip_protocol("") == self.store.fs.unstrip_protocol("")
        return is_one and type(other.files) is type(self.store.files)
