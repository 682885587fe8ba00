"""The folder of a table, where its partitions are written: on this machine, on HDFS or on an object store."""

from __future__ import annotations

import posixpath
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from fsspec import AbstractFileSystem
from fsspec.implementations.local import LocalFileSystem

from falcon_assets.errors import StorageError
from falcon_assets.model.store_url import canonical_url, is_hdfs, is_object_store
from falcon_assets.model.table_uri import TableUri
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.files.entry import modified_at
from falcon_assets.storage.files.file_access import FileAccess
from falcon_assets.storage.files.files_on import files_on
from falcon_assets.storage.instances.data_version import DataVersion, version_of_entries
from falcon_assets.storage.kinds.objects.spark_urls import spark_url
from falcon_assets.storage.tables.catalog import Column, TableLayout
from falcon_assets.storage.tables.table_store import TableStore


class TableFolder(ABC):
    """The folder of a table; methods raise OSError, paths are absolute, as fsspec takes them.

    ``store`` is the object store with the folder; None: it is on a file system, which any Spark reaches.
    """

    root: str
    store: ClusterStore | None = None

    def version(self, path: str) -> DataVersion:
        """Returns the version of the files below a folder."""
        return version_of_entries(self.access, ((str(one["name"])[len(path) + 1 :], one) for one in self._files(path)))

    @property
    @abstractmethod
    def access(self) -> FileAccess: ...

    @abstractmethod
    def _files(self, path: str) -> Iterable[Mapping[str, Any]]:
        """Lists the files below a folder; none if it is missing."""

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


class FileFolder(TableFolder):
    def __init__(self, fs: AbstractFileSystem, location: str) -> None:
        self.fs, self.files = fs, files_on(fs)
        self.root = str(self.path(location))

    @property
    def access(self) -> FileAccess:
        return self.files

    def _files(self, path: str) -> Iterable[Mapping[str, Any]]:
        return [one for name, one in self.fs.find(path, detail=True).items() if name != path]

    def is_on(self, store: ClusterStore) -> bool:
        return type(store.files) is type(self.files)

    def is_mounted(self) -> bool:
        return self.files.is_mounted(self.root)

    def is_there(self, path: str) -> bool:
        return bool(self.fs.exists(path))

    def below(self, path: str) -> dict[str, float]:
        return {str(one["name"]): at.timestamp() for one in self._files(path) if (at := modified_at(one))}

    def read(self, path: str) -> str:
        return bytes(self.fs.cat_file(path)).decode()

    def prepare(self, path: str) -> None:
        self.files.make_folder(posixpath.dirname(path))

    def prune(self, path: str) -> None:
        with suppress(OSError):
            self.fs.rmdir(path)

    def settle(self, path: str, permission: str | None) -> None:
        self.files.set_permission(path, permission)
        self.files.sync_tree(path)


class MountedFolder(FileFolder):
    def path(self, place: str) -> str | None:
        return mounted_path(place)

    def url(self, path: str) -> str:
        return f"file://{path}"

    def write(self, path: str, text: str) -> None:
        self.prepare(path)
        new = Path(path).with_name(f".{Path(path).name}")
        new.write_text(text, encoding="utf-8")
        self.files.sync(str(new))
        new.replace(path)
        self.files.sync(posixpath.dirname(path))

    def remove(self, path: str) -> None:
        if Path(path).is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            Path(path).unlink(missing_ok=True)


class HdfsFolder(FileFolder):
    """A folder that Spark reads and writes by Hadoop's own protocol, and Falcon by WebHDFS.

    All URLs begin as ``location``.
    """

    def __init__(self, fs: AbstractFileSystem, location: str) -> None:
        self._begins, self._shown = _host(location), "/".join(location.split("/")[:3])
        super().__init__(fs, location)

    def path(self, place: str) -> str | None:
        if _host(place) != self._begins:
            return None
        return posixpath.normpath("/" + place.partition("://")[2].partition("/")[2])

    def url(self, path: str) -> str:
        return f"{self._shown}{path}"

    def write(self, path: str, text: str) -> None:
        new = f"{posixpath.dirname(path)}/.{posixpath.basename(path)}"
        self.fs.pipe_file(new, text.encode())
        self.remove(path)  # a rename goes to a name that nothing has
        self.fs.mv(new, path)

    def remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self.fs.rm(path, recursive=True)


class ObjectFolder(TableFolder):
    """A folder on an object store; the scheme of ``location`` (``s3``, ``s3a``) is that of all its URLs."""

    def __init__(self, store: ClusterStore, location: str) -> None:
        self.store, self._location = store, location.rstrip("/")
        self._fs, self._scheme = store.fs, canonical_url(location).partition("://")[0]
        self.root = str(self._fs._strip_protocol(self._location))

    @property
    def access(self) -> FileAccess:
        assert self.store is not None
        return self.store.files

    def _files(self, path: str) -> Iterable[Mapping[str, Any]]:
        return [one for one in self.access.all_below(path) or () if str(one["name"]).startswith(f"{path}/")]

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
        return {str(one["name"]): at.timestamp() for one in self._files(path) if (at := modified_at(one))}

    def read(self, path: str) -> str:
        return bytes(self._fs.cat_file(path)).decode()

    def write(self, path: str, text: str) -> None:
        self._fs.pipe_file(path, text.encode())

    def prepare(self, path: str) -> None:
        pass  # there are no folders

    def remove(self, path: str) -> None:
        if found := [str(entry["name"]) for entry in self.access.all_below(path) or ()]:
            self.access.remove(found)

    def prune(self, path: str) -> None:
        pass

    def settle(self, path: str, permission: str | None) -> None:
        pass


def _host(url: str) -> str:
    return "/".join(canonical_url(url).split("/")[:3])


def table_folder(tables: TableStore, name: str, location: str) -> TableFolder:
    """Opens ``location`` with ``storage_options`` of the cluster; StorageError: it is on no such store."""
    if location.startswith("file:"):
        return MountedFolder(LocalFileSystem(), location)
    if is_hdfs(location):
        return HdfsFolder(tables.without_tables.at(location).fs, location)
    if is_object_store(location):
        return ObjectFolder(tables.without_tables.at(canonical_url(location)), location)
    raise StorageError(
        f"table {name} lies at {location}, and partitions are written, kept and evicted on file://, on HDFS and on "
        "object stores only"
    )


def new_layout(tables: TableStore, uri: TableUri, kind: str) -> TableLayout:
    """Describes a table that has yet to be made, in a format: below the cluster's own store, with texts as keys."""
    files, path = tables.without_tables, f"/tables/{uri.database}/{uri.table}"
    is_hadoop = tables.catalog.says_urls_of_hadoop and Ability.WITHOUT_CONNECTOR in files.files.cannot
    location = spark_url(files, files.path(path)) if is_hadoop else files.url(path)
    return TableLayout(uri.name, (), tuple(Column(key, "string") for key, _ in uri.keys), location, kind)
