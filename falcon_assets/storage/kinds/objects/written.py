"""Staging of outputs of a process instance before they are published on an object store."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

from fsspec.implementations.local import LocalFileSystem

from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.file_copy import Attributes, Throttle
from falcon_assets.storage.kinds.objects.file_copy import ObjectFileCopy
from falcon_assets.storage.kinds.objects.spark_urls import spark_url


class Written(ABC):
    """Written files of each output; methods raise OSError and exceptions of drivers."""

    @abstractmethod
    def place(self, name: str) -> str:
        """Absolute path for output ``name``; nothing is there yet."""

    @abstractmethod
    def url(self, name: str) -> str: ...

    @abstractmethod
    def files(self, name: str) -> list[str]:
        """Relative to the place."""

    @abstractmethod
    def open(self, name: str, file: str) -> AbstractContextManager[IO[bytes]]: ...

    @abstractmethod
    def replace(self, name: str, file: str, by: Path) -> None: ...

    @abstractmethod
    def bring(self, name: str, files: Iterable[str], final: str, check: Callable[[], None]) -> None:
        """Copies these files to ``final`` on the store, no others; calls ``check``, which may raise, before each."""


class StoreWritten(Written):
    """Spark writes to the store, which itself copies what is not written where it is to be."""

    def __init__(self, store: ClusterStore, places: Mapping[str, str]) -> None:
        self._store, self._fs, self._places = store, store.fs, places
        self._sizes: dict[str, int] = {}

    def place(self, name: str) -> str:
        return self._places[name]

    def url(self, name: str) -> str:
        return spark_url(self._store, self.place(name))

    def files(self, name: str) -> list[str]:
        place = self.place(name)
        found = {str(entry["name"]): int(entry["size"]) for entry in self._store.files.all_below(place) or ()}
        self._sizes |= found
        return [one[len(place) + 1 :] for one in found]

    def open(self, name: str, file: str) -> AbstractContextManager[IO[bytes]]:
        opened: AbstractContextManager[IO[bytes]] = self._fs.open(f"{self.place(name)}/{file}", "rb")
        return opened

    def replace(self, name: str, file: str, by: Path) -> None:
        place = f"{self.place(name)}/{file}"
        self._fs.put_file(str(by), place)
        self._sizes[place] = by.stat().st_size

    def bring(self, name: str, files: Iterable[str], final: str, check: Callable[[], None]) -> None:
        if final == self.place(name):
            self._store.files.remove(f"{final}/{one}" for one in {*self.files(name)} - {*files})
            return

        def one(file: str) -> None:
            check()
            source = f"{self.place(name)}/{file}"
            self._store.files.copy(source, f"{final}/{file}", self._sizes[source])

        with ThreadPoolExecutor(self._store.files.requests) as pool:
            list(pool.map(one, files))


class LocalWritten(Written):
    """Spark writes to ``folder`` of this machine; the files are copied to the store, and verified."""

    def __init__(self, store: ClusterStore, folder: Path) -> None:
        self._store, self._folder = store, folder

    def place(self, name: str) -> str:
        return f"{self._folder}/{name}"

    def url(self, name: str) -> str:
        return f"file://{self.place(name)}"

    def files(self, name: str) -> list[str]:
        place = Path(self.place(name))
        return [str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()]

    def open(self, name: str, file: str) -> AbstractContextManager[IO[bytes]]:
        return Path(self.place(name), file).open("rb")

    def replace(self, name: str, file: str, by: Path) -> None:
        shutil.copyfile(by, Path(self.place(name), file))

    def bring(self, name: str, files: Iterable[str], final: str, check: Callable[[], None]) -> None:
        place = self.place(name)
        copy = ObjectFileCopy(LocalFileSystem(), self._store.fs, Throttle(None), Attributes(), False)

        def one(file: str) -> None:
            check()
            copy.copy(f"{place}/{file}", f"{final}/{file}", Path(place, file).stat().st_size)

        with ThreadPoolExecutor(self._store.files.requests) as pool:
            list(pool.map(one, files))
