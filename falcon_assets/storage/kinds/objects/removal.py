"""Removing on stores without rename: the flag first, so that the rest is not taken for an instance."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cached_property

from falcon_assets.errors import StorageError
from falcon_assets.planning.eviction import StoredLocation
from falcon_assets.storage.kinds.objects.pointer_store import PointerStore
from falcon_assets.storage.kinds.removing import FileRemoval


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
