"""One output on its way to an object store where the feed keeps versions: a folder of its own, and one write.

The flag leads readers from the old version to the new one; a run replaces it only if it has not changed since the run
began. So an overtaken run changes nothing that is read, and readers by the flag see the whole old instance or the whole
new one; there is no moment without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from uuid import uuid4

from falcon_assets.errors import BeingWrittenError, StorageError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.instances.data_version import DataVersion, fingerprint
from falcon_assets.storage.instances.version_pointer import VERSIONS, VersionPointer
from falcon_assets.storage.kinds.objects.pointer_store import PointerStore, StoredFlag
from falcon_assets.storage.output_target import KeptAs


class VersionSwitch:
    """The switch of one instance; ``check`` raises if another run has taken over."""

    def __init__(self, store: ClusterStore, path: str, flag: str, keeps: KeptAs, where: str) -> None:
        self._store, self._path, self._flag, self._keeps, self._where = store, path.rstrip("/"), flag, keeps, where
        self._pointers = PointerStore(store)
        self._before = StoredFlag(None, None)
        self._plain: list[str] = []
        self._folder, self._is_present = f"{VERSIONS}/{uuid4().hex}", False

    @property
    def place(self) -> str:
        return self._store.path(f"{self._path}/{self._folder}")

    def prepare(self, check: Callable[[], None]) -> None:
        """Removes what killed runs left; ``check``, after the listing, ensures that no newer run's files are in it."""
        self._before = self._pointers.read(self._path, self._flag)
        base = self._store.path(self._path)
        self._store.files.refresh()
        names = [str(name)[len(base) + 1 :] for name in self._store.fs.find(base)]
        check()
        known = self._before.pointer
        if known is None and self._before.content is not None:
            self._plain = [name for name in names if name != self._flag and not name.startswith(f"{VERSIONS}/")]
        folders = {known.folder, *known.kept.values()} if known else set()
        stays = {self._flag, *self._plain}
        left = [name for name in names if name not in stays and "/".join(name.split("/")[:2]) not in folders]
        self._remove(left)

    def switch(self, check: Callable[[], None]) -> DataVersion:
        """Makes what was written the instance, and keeps what it replaces, unless both are the same."""
        new = fingerprint(self._store, f"{self._path}/{self._folder}", None)
        known, version = self._before.pointer, new.version
        plain = dict[str, str]()
        if known and known.version == version:
            return new
        if known is None and self._plain:
            if self._version_of("").version == version:
                return new
            plain = self._plain_as_version(check)
        self._complete(self._folder)
        replaced = self._point(self._folder, version, plain, check)
        self._is_present = True
        self._remove(self._plain)
        if same := replaced.get(version):
            self._remove_folder(same)
        return new

    def restore(self, version: str, check: Callable[[], None], *, dry_run: bool) -> tuple[DataVersion, bool]:
        """Makes a kept version the instance; returns it, and whether it was not yet."""
        known = self._before.pointer
        if self._before.content is not None:
            present = fingerprint(self._store, self._path, self._flag)
            if present.version == version:
                return present, False
        if known is None or version not in known.kept:
            raise StorageError(f"{self._where}: there is no version {version}: it was not kept, or is removed already")
        folder = known.kept[version]
        found = self._version_of(folder)
        if found.version != version:
            at = f"{self._store.shown(self._path)}/{folder}"
            raise StorageError(
                f"{self._where}: what lies at {at} is not version {version} any more: somebody changed it"
            )
        if not dry_run:
            self._point(folder, version, {}, check)
        return found, True

    def drop(self) -> None:
        if self._is_present:
            return
        # A write that seemed to fail may have been done.
        pointer = self._pointers.read(self._path, self._flag).pointer
        if pointer is None or pointer.folder != self._folder:
            self._remove_folder(self._folder)

    def _point(
        self, folder: str, version: str, plain: Mapping[str, str], check: Callable[[], None]
    ) -> Mapping[str, str]:
        while True:
            known = self._before.pointer
            before = known.kept if known else {}
            kept = {**before, **({known.version: known.folder} if known else plain)}
            kept.pop(version, None)
            if kept:
                self._pointers.note(self._keeps.name, self._path, self._flag)
            check()
            pointer = VersionPointer(folder, version, kept, self._keeps.name)
            if self._pointers.replace(self._path, self._flag, self._before, pointer):
                return before
            self._before = self._pointers.read(self._path, self._flag)
            now = self._before.pointer
            # Retention may have removed versions meanwhile; what is not the same instance any more, another run wrote.
            went = {*before} - {*now.kept} if now else set()
            if (
                now is None
                or known is None
                or now.folder != known.folder
                or (folder != self._folder and version in went)
            ):
                raise BeingWrittenError(f"{self._where} is being written by another run meanwhile")

    def _plain_as_version(self, check: Callable[[], None]) -> dict[str, str]:
        """Copies files beside the flag, from before the feed kept versions, to a folder of their own."""
        folder, base = f"{VERSIONS}/{uuid4().hex}", self._store.path(self._path)

        def one(name: str) -> None:
            check()
            self._store.fs.cp_file(f"{base}/{name}", f"{base}/{folder}/{name}")

        with ThreadPoolExecutor(self._store.files.requests) as pool:
            list(pool.map(one, self._plain))
        self._complete(folder)
        return {self._version_of(folder).version: folder}

    def _complete(self, folder: str) -> None:
        """Sets a flag of its own: what is read as a version is an instance, too."""
        self._store.fs.pipe_file(f"{self._store.path(self._path)}/{folder}/{self._flag}", b"")

    def _version_of(self, folder: str) -> DataVersion:
        return fingerprint(self._store, f"{self._path}/{folder}", self._flag)

    def _remove_folder(self, folder: str) -> None:
        with suppress(FileNotFoundError):
            self._store.files.remove_tree(self._store.path(f"{self._path}/{folder}"))

    def _remove(self, names: list[str]) -> None:
        base = self._store.path(self._path)
        self._store.files.remove(f"{base}/{name}" for name in names)
