"""Removing on stores without rename: the flag first, so that the rest is not taken for an instance."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property

from falcon_assets.errors import StorageError
from falcon_assets.planning.eviction import StoredLocation
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.instances.data_files import is_side_file
from falcon_assets.storage.kinds.objects.pointer_store import PointerStore
from falcon_assets.storage.kinds.removing import parent_and_name
from falcon_assets.storage.staging import copies_folder


class ObjectRemoval:
    def __init__(self, store: ClusterStore, flag: str | None) -> None:
        self._store, self._fs, self._flag = store, store.fs, flag
        self._pointers = PointerStore(store)

    def place(self, location: StoredLocation) -> str:
        parent_and_name(self._store, location)
        return self._store.path(location.path)

    @contextmanager
    def held(self, location: StoredLocation) -> Iterator[str]:
        self._store.files.refresh()
        yield self.place(location)

    def measure(self, place: str) -> tuple[int, int]:
        sizes = [
            entry["size"]
            for name, entry in self._fs.find(place, detail=True).items()
            if name != f"{place}/{self._flag}" and not any(map(is_side_file, name[len(place) + 1 :].split("/")))
        ]
        return len(sizes), sum(sizes)

    def remove(self, location: StoredLocation, place: str) -> None:
        if self._flag and location.kind == "version":
            self._remove_version(location, place, self._flag)
            return
        if self._flag and location.kind == "data":
            if self._has_versions and (pointer := self._pointers.read(location.path, self._flag).pointer):
                self._pointers.forget(pointer.keeps)
            with suppress(FileNotFoundError):
                self._fs.rm_file(f"{place}/{self._flag}")
        self.set_aside(place)
        if location.kind == "data" and self._has_copies:
            self.set_aside(copies_folder(self._store, location.path))
        folder = place.rpartition("/")[0]
        for _ in range(location.path[len(location.prefix) :].count("/") - 1):
            with suppress(FileNotFoundError):
                if self._fs.ls(folder, detail=False):
                    return
                self._fs.rmdir(folder)
            folder = folder.rpartition("/")[0]

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
    def _has_copies(self) -> bool:
        return bool(self._fs.exists(f"{self._store.staging}/copies"))
