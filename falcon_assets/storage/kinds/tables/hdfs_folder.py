"""The folder of a table on HDFS, which Spark reads and writes by Hadoop's own protocol, and Falcon by WebHDFS."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import IO, Any

from fsspec.spec import AbstractBufferedFile

from falcon_assets.model.store_url import canonical_url
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.files.files_on import files_on
from falcon_assets.storage.files.web_hdfs import WebHdfsFileSystem
from falcon_assets.storage.kinds.objects.written import Written
from falcon_assets.storage.kinds.tables.table_folder import TableFolder

_BLOCK = 1 << 20
_MILLISECONDS = 1000.0


class HdfsFolder(TableFolder):
    """A folder on HDFS, which any Spark reaches: ``store`` is None. All URLs begin as ``location``."""

    def __init__(self, fs: WebHdfsFileSystem, location: str) -> None:
        self.fs = fs
        self._begins = _host(location)
        self._shown = "/".join(location.split("/")[:3])
        self.root = str(self.path(location))

    def is_on(self, store: ClusterStore) -> bool:
        return isinstance(store.fs, WebHdfsFileSystem)

    def path(self, place: str) -> str | None:
        if _host(place) != self._begins:
            return None
        return posixpath.normpath("/" + place.partition("://")[2].partition("/")[2])

    def url(self, path: str) -> str:
        return f"{self._shown}{path}"

    def is_mounted(self) -> bool:
        return self.fs.isdir(self.root)

    def is_there(self, path: str) -> bool:
        return self.fs.exists(path)

    def below(self, path: str) -> dict[str, float]:
        found = self.fs.find(path, detail=True)
        return {name: entry["modificationTime"] / _MILLISECONDS for name, entry in found.items() if name != path}

    def read(self, path: str) -> str:
        return self.fs.cat_file(path).decode()

    def write(self, path: str, text: str) -> None:
        new = f"{posixpath.dirname(path)}/.{posixpath.basename(path)}"
        self.fs.pipe_file(new, text.encode())
        self.remove(path)  # a rename goes to a name that nothing has
        self.fs.mv(new, path)

    def prepare(self, path: str) -> None:
        self.fs.mkdir(posixpath.dirname(path))

    def remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self.fs.rm(path, recursive=True)

    def prune(self, path: str) -> None:
        with suppress(OSError):
            self.fs.rmdir(path)

    def settle(self, path: str, permission: str | None) -> None:
        files_on(self.fs).set_permission(path, permission)


class HdfsWritten(Written):
    def __init__(self, folder: HdfsFolder, place: str) -> None:
        self._folder, self._place = folder, place

    def place(self, name: str) -> str:
        return self._place

    def url(self, name: str) -> str:
        return self._folder.url(self._place)

    def files(self, name: str) -> list[str]:
        with suppress(FileNotFoundError):  # nothing was written
            files_on(self._folder.fs).remove_side_files(self._place, None)
        return [one[len(self._place) + 1 :] for one in self._folder.fs.find(self._place)]

    def open(self, name: str, file: str) -> AbstractContextManager[IO[bytes]]:
        fs, path = self._folder.fs, f"{self._place}/{file}"
        opened: AbstractContextManager[IO[bytes]] = _Read(fs, path, size=fs.info(path)["size"])
        return opened

    def replace(self, name: str, file: str, by: Path) -> None:
        with by.open("rb") as content:
            self._folder.fs.pipe_file(f"{self._place}/{file}", _blocks(content))

    def bring(self, name: str, files: Iterable[str], final: str, check: Callable[[], None]) -> None:
        pass  # it is there


class _Read(AbstractBufferedFile):  # type: ignore[misc]  # which has no types
    """A file whose parts are requested when they are read: the ends of large ones describe the rest."""

    def _fetch_range(self, start: int, end: int) -> Any:
        return self.fs.cat_file(self.path, start, end)


def _blocks(content: IO[bytes]) -> Iterator[bytes]:
    while block := content.read(_BLOCK):
        yield block


def _host(url: str) -> str:
    return "/".join(canonical_url(url).split("/")[:3])
