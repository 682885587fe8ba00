"""Instances on object stores, which have neither rename nor locks: the flag is the switch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property

from falcon_assets.errors import StorageError
from falcon_assets.planning.eviction import StoredLocation, StoredVersion
from falcon_assets.storage.copying.copy_target import REPLICATING, CopyRules
from falcon_assets.storage.errors import driver_explained
from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.files.entry import modified_at
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.instances.held_data import HeldData
from falcon_assets.storage.instances.publication import InstancePublication
from falcon_assets.storage.instances.version_pointer import data_path
from falcon_assets.storage.kinds.file_storage import FileStorage
from falcon_assets.storage.kinds.objects.copy_target import ObjectCopyTarget
from falcon_assets.storage.kinds.objects.pointer_store import PointerStore
from falcon_assets.storage.kinds.objects.publication import ObjectPublication
from falcon_assets.storage.kinds.objects.spark_urls import connector_scheme, spark_url
from falcon_assets.storage.kinds.objects.staged_input import staged_input
from falcon_assets.storage.kinds.reading import ReadableInstance
from falcon_assets.storage.kinds.removing import FileRemoval, Removal
from falcon_assets.storage.kinds.storage_kind import KEEPS_NONE, NOTHING_HELD, READERS_SECONDS
from falcon_assets.storage.local_staging import LocalStaging
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.staging import HELD_SECONDS, held_folder


class ObjectRemoval(FileRemoval):
    def remove(self, location: StoredLocation, place: str) -> None:
        if self._flag and location.kind == "version":
            self._remove_version(location, place, self._flag)
            return
        if self._flag and location.kind == "data":
            if self._has_versions and (pointer := self._pointers.read(location.path, self._flag).pointer):
                self._pointers.forget(pointer.keeps)
            with suppress(FileNotFoundError):
                self._fs.rm_file(f"{place}/{self._flag}")
        super().remove(location, place)

    def _is_pruned(self, folder: str) -> bool:
        if self._fs.ls(folder, detail=False):
            return False
        self._fs.rmdir(folder)
        return True

    def set_aside(self, place: str) -> None:
        try:
            self._store.files.remove_tree(place)
        except FileNotFoundError:
            self._store.require_root(afresh=True)  # else nobody knows whether it went

    def _remove_version(self, location: StoredLocation, place: str, flag: str) -> None:
        """Updates the flag first: a run that restores this version meanwhile either is first or finds it gone."""
        before = self._pointers.read(location.prefix, flag)
        pointer, folder = before.pointer, location.path[len(location.prefix) + 1 :]
        if pointer is not None:
            left = replace(pointer, kept={version: one for version, one in pointer.kept.items() if one != folder})
            if left != pointer and not self._pointers.replace(location.prefix, flag, before, left):
                where = f"cluster {self._store.cluster.name!r}: cannot evict {location.path}"
                raise StorageError(f"{where}: its instance was written meanwhile; the next pass does")
            if not left.kept:
                self._pointers.forget(pointer.keeps)
        if pointer is None or pointer.folder != folder:
            self.set_aside(place)

    @cached_property
    def _has_versions(self) -> bool:
        return bool(self._fs.exists(f"{self._store.staging}/versions"))

    @cached_property
    def _pointers(self) -> PointerStore:
        return PointerStore(self._store)


class ObjectStorage(FileStorage):
    """Switches by the availability flag: it is removed before any change of an instance, and written last."""

    @property
    def connector(self) -> str | None:
        return connector_scheme(self.store)

    def reading(
        self, path: str, flag: str | None, staging: LocalStaging | None = None
    ) -> AbstractContextManager[ReadableInstance]:
        if staging is None:
            return super().reading(path, flag)
        return staged_input(self.store, path, flag, staging)

    @contextmanager
    def _read_in_place(self, path: str, flag: str | None) -> Iterator[ReadableInstance]:
        with driver_explained(self.store.cluster.name, f"read {path}"):
            place = data_path(self.store, path, flag)
        with super()._read_in_place(place, flag) as found:
            yield found

    def url(self, path: str) -> str:
        if Ability.WITHOUT_CONNECTOR not in self.cannot:
            return super().url(path)
        return spark_url(self.store, self.store.path(path))

    def publish(
        self,
        key: str,
        outputs: Mapping[str, OutputTarget],
        staging: LocalStaging | None = None,
        held: Mapping[str, HeldData] = NOTHING_HELD,
    ) -> AbstractContextManager[InstancePublication]:
        return ObjectPublication(self.store, key, outputs, staging, held)

    def copy_target(self, output: OutputTarget, source: str, rules: CopyRules = REPLICATING) -> ObjectCopyTarget:
        if output.keeps is not None:
            where = f"cluster {self.store.cluster.name!r}: {self.store.shown(output.path)}"
            raise StorageError(f"{where} is copied to an object store, where copies keep no versions")
        self.store.require_root(claims=True)
        return ObjectCopyTarget(self.store, output, source, rules)

    def kept_versions(self, feed: str, instance: datetime | None = None) -> list[StoredVersion]:
        with driver_explained(self.store.cluster.name, f"list the versions of {feed}"):
            return PointerStore(self.store).kept(feed, instance)

    def restore(
        self, key: str, output: OutputTarget, version: str, *, dry_run: bool = False
    ) -> tuple[DataVersion, bool]:
        if output.keeps is None:
            raise StorageError(f"{key}: {KEEPS_NONE}")
        with ObjectPublication(self.store, key, {"version": output}, None) as publication:
            return publication.restore("version", version, dry_run=dry_run)

    def removal(self, flag: str | None) -> Removal:
        return ObjectRemoval(self.store, flag)

    def purge(self, patience: float = READERS_SECONDS) -> None:
        with suppress(StorageError), driver_explained(self.store.cluster.name, "remove what was kept aside"):
            found = self.store.fs.find(held_folder(self.store), detail=True)
            written = {str(name): modified_at(entry) for name, entry in found.items()}
            until = datetime.now(UTC) - timedelta(seconds=HELD_SECONDS)
            self.store.files.remove(name for name, at in written.items() if at is not None and at < until)

    def is_untouched(self, location: StoredLocation, flag: str | None) -> bool:
        # Without a flag the whole cannot be distinguished from a part.
        self.store.files.refresh()
        return (
            location.kind == "data"
            and flag is not None
            and bool(self.store.fs.exists(f"{self.store.path(location.path)}/{flag}"))
        )
