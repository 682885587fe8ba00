"""The folder of a table, where its partitions are written: on this machine, on HDFS or on an object store."""

from __future__ import annotations

import os
import posixpath
import shutil
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path

from fsspec.implementations.local import LocalFileSystem

from falcon_assets.base.durable import make_folders, sync, sync_tree
from falcon_assets.model.store_url import canonical_url
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.files.entry import modified_at
from falcon_assets.storage.files.files_on import files_on


class TableFolder(ABC):
    """The folder of a table; methods raise OSError, paths are absolute, as fsspec takes them.

    ``store`` is the object store with the folder; None: it is on a file system, which any Spark reaches.
    """

    root: str
    store: ClusterStore | None = None

    @abstractmethod
    def is_on(self, store: ClusterStore) -> bool:
        """Whether files can be copied between it and such a store."""

    @abstractmethod
    def path(self, place: str) -> str | None:
        """Returns the path of a catalog's URL; None: it is on another store."""

    @abstractmethod
    def url(self, path: str) -> str: ...

    @abstractmethod
    def is_mounted(self) -> bool:
        """Whether the folder can be listed; true if it needs no mounting."""

    @abstractmethod
    def is_there(self, path: str) -> bool: ...

    @abstractmethod
    def below(self, path: str) -> dict[str, float]:
        """Returns the files below a folder, with their time in seconds since 1970; empty if it is missing."""

    @abstractmethod
    def read(self, path: str) -> str: ...

    @abstractmethod
    def write(self, path: str, text: str) -> None:
        """Writes a small file, as a whole, so that it survives a crash."""

    @abstractmethod
    def prepare(self, path: str) -> None: ...

    @abstractmethod
    def remove(self, path: str) -> None: ...

    @abstractmethod
    def prune(self, path: str) -> None: ...

    @abstractmethod
    def settle(self, path: str, permission: str | None) -> None:
        """Gives what was written the octal mode, if the store has modes, and makes it survive a crash."""


def mounted_path(place: str) -> str | None:
    """Returns the path of a URL on a file system of this machine; None: it is on another store."""
    if not place.startswith("file:"):
        return None
    return posixpath.normpath("/" + place.removeprefix("file:").lstrip("/"))


class MountedFolder(TableFolder):
    def __init__(self, location: str) -> None:
        self.root = str(self.path(location))

    def is_on(self, store: ClusterStore) -> bool:
        return isinstance(store.fs, LocalFileSystem)

    def path(self, place: str) -> str | None:
        return mounted_path(place)

    def url(self, path: str) -> str:
        return f"file://{path}"

    def is_mounted(self) -> bool:
        return Path(self.root).is_dir()

    def is_there(self, path: str) -> bool:
        return Path(path).exists()

    def below(self, path: str) -> dict[str, float]:
        found = {}
        for parent, _, names in os.walk(path):
            for name in names:
                with suppress(FileNotFoundError):
                    found[f"{parent}/{name}"] = Path(parent, name).stat().st_mtime
        return found

    def read(self, path: str) -> str:
        return Path(path).read_text(encoding="utf-8")

    def write(self, path: str, text: str) -> None:
        make_folders(Path(path).parent)
        new = Path(path).with_name(f".{Path(path).name}")
        new.write_text(text, encoding="utf-8")
        sync(new)
        new.replace(path)
        sync(new.parent)

    def prepare(self, path: str) -> None:
        make_folders(Path(path).parent)

    def remove(self, path: str) -> None:
        if Path(path).is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            Path(path).unlink(missing_ok=True)

    def prune(self, path: str) -> None:
        with suppress(OSError):
            Path(path).rmdir()

    def settle(self, path: str, permission: str | None) -> None:
        files_on(LocalFileSystem()).set_permission(path, permission)
        sync_tree(Path(path))


class ObjectFolder(TableFolder):
    """A folder on an object store; the scheme of ``location`` (``s3``, ``s3a``) is that of all its URLs."""

    def __init__(self, store: ClusterStore, location: str) -> None:
        self.store, self._location = store, location.rstrip("/")
        self._fs, self._scheme = store.fs, canonical_url(location).partition("://")[0]
        self.root = str(self._fs._strip_protocol(self._location))

    def is_on(self, store: ClusterStore) -> bool:
        return Ability.RENAME in store.files.cannot

    def path(self, place: str) -> str | None:
        if canonical_url(place).partition("://")[0] != self._scheme:
            return None
        return str(self._fs._strip_protocol(place)).rstrip("/")

    def url(self, path: str) -> str:
        return f"{self._location}{path.removeprefix(self.root)}"

    def is_mounted(self) -> bool:
        return True

    def is_there(self, path: str) -> bool:
        self._fs.invalidate_cache()
        return bool(self._fs.exists(path))

    def below(self, path: str) -> dict[str, float]:
        assert self.store is not None
        entries = self.store.files.all_below(path) or ()
        return {
            str(entry["name"]): at.timestamp()
            for entry in entries
            if str(entry["name"]).startswith(f"{path}/") and (at := modified_at(entry))
        }

    def read(self, path: str) -> str:
        return bytes(self._fs.cat_file(path)).decode()

    def write(self, path: str, text: str) -> None:
        self._fs.pipe_file(path, text.encode())

    def prepare(self, path: str) -> None:
        pass  # there are no folders

    def remove(self, path: str) -> None:
        assert self.store is not None
        found = [str(entry["name"]) for entry in self.store.files.all_below(path) or ()]
        if found:
            self.store.files.remove(found)

    def prune(self, path: str) -> None:
        pass

    def settle(self, path: str, permission: str | None) -> None:
        pass
