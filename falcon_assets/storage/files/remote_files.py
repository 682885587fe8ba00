"""The files of a store that is asked over the network, with the abilities of its fsspec driver."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from falcon_assets.errors import StorageError
from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.files.entry import ETAGS, MODIFIED, modified_at
from falcon_assets.storage.files.file_access import FileAccess

_BLOCK = 16 << 20
"""A request for less takes longer to arrive than to be read."""
_TELL_CHANGES = {"hdfs", "arrow_hdfs", "webhdfs", "webHDFS", "sftp", "ssh", "smb"}
"""Of fsspec's names of file systems: those whose folders have a modification time."""
_MAGIC = re.compile(r"[*?\[]")


class RemoteFiles(FileAccess):
    requests = 16
    cannot = frozenset(Ability) - {Ability.WITHOUT_CONNECTOR}
    marks_at_sight = False
    looks_by_request = True

    def refresh(self) -> None:
        self.fs.invalidate_cache()

    def real(self, path: str) -> str:
        return path.rstrip("/")

    def endpoint(self, url: str) -> str:
        split = urlsplit(url)
        return f"{split.scheme}://{split.netloc}"

    def is_mounted(self, root: str) -> bool:
        return True  # a server that cannot be reached says so

    def is_empty(self, root: str) -> bool:
        return False

    def stamp(self, path: str) -> object | None:
        return None

    def put_new(self, path: str, content: bytes) -> bytes:
        self.refresh()
        if not self.fs.exists(path):
            self.fs.pipe_file(path, content)
        found: bytes = self.fs.cat_file(path)
        return found

    @property
    def tells_changes(self) -> bool:
        protocols = self.fs.protocol
        return not _TELL_CHANGES.isdisjoint([protocols] if isinstance(protocols, str) else protocols)

    def changed_at(self, entry: Mapping[str, Any]) -> datetime | None:
        is_link = entry.get("islink") and entry.get("type") != "directory"
        return modified_at(entry) if self.tells_changes and not is_link else None

    def unlinked(self, folder: str, only: str | None = None) -> Iterable[tuple[str, bool]]:
        for entry in self.fs.ls(folder, detail=True):
            path, kind = str(entry["name"]).rstrip("/"), entry["type"]
            name = path.rpartition("/")[2]
            if path != folder and only in (None, name) and kind in ("directory", "file") and not entry.get("islink"):
                yield name, kind == "directory"

    def blocks(self, path: str, size: int, at_most: Callable[[int], int] = int) -> Iterator[bytes | memoryview]:
        step, start = at_most(_BLOCK), 0
        while start < size:
            block: bytes = self.fs.cat_file(path, start=start, end=min(start + step, size))
            if not block:
                return
            yield block
            start += len(block)

    def version(self, path: str) -> str:
        return entry_version(self.fs.info(path))

    def without_links(self, base: str, left_out: Callable[[str], bool]) -> Mapping[str, tuple[int, str]]:
        self.refresh()
        found = ((str(name)[len(base) + 1 :], entry) for name, entry in self.fs.find(base, detail=True).items())
        return {
            name: (entry["size"], entry_version(entry))
            for name, entry in found
            if not any(map(left_out, name.split("/")))
        }

    def remove(self, paths: Iterable[str]) -> None:
        if found := list(map(_escaped, paths)):
            self.fs.rm(found)

    def remove_tree(self, path: str) -> None:
        self.fs.rm(_escaped(path), recursive=True)


def entry_version(entry: Mapping[str, Any]) -> str:
    """Returns the version of a file from fsspec's entry; raises StorageError if nothing in it can serve as one."""
    for key in (*ETAGS, *MODIFIED, "created"):
        if entry.get(key) is not None:
            value = entry[key]
            # Some drivers list times as numbers, and give that of a single file as a datetime.
            return str(value.timestamp() if isinstance(value, datetime) else value).strip('"')
    raise StorageError("the store reports neither etags nor modification times of its files")


def _escaped(path: str) -> str:
    """Returns a pattern of fsspec that only ``path`` matches: ``AbstractFileSystem.rm`` expands its argument."""
    return _MAGIC.sub(r"[\g<0>]", path)
