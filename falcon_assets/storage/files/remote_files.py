"""The files of a store that is asked over the network, as far as its driver of fsspec tells."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from falcon_assets.errors import StorageError
from falcon_assets.storage.files.file_access import FileAccess

_BLOCK = 16 << 20
"""A request for less takes longer to come than to be read."""
_ETAGS = ("ETag", "etag", "md5Hash", "generation")
"""What says by itself that a content is another one: S3, abfs, gs."""
_TIMES = ("LastModified", "last_modified", "updated", "modified", "modificationTime", "mtime", "created")
_MAGIC = re.compile(r"[*?\[]")


class RemoteFiles(FileAccess):
    """See :class:`FileAccess`."""

    def refresh(self) -> None:
        self.fs.invalidate_cache()

    def real(self, path: str) -> str:
        return path

    def blocks(self, path: str, size: int, at_most: Callable[[int], int] = int) -> Iterator[bytes | memoryview]:
        step, start = at_most(_BLOCK), 0
        while start < size:
            block: bytes = self.fs.cat_file(path, start=start, end=min(start + step, size))
            if not block:
                return
            yield block
            start += len(block)

    def mark(self, path: str) -> str:
        return entry_mark(self.fs.info(path))

    def remove(self, paths: Iterable[str]) -> None:
        if found := list(map(_escaped, paths)):
            self.fs.rm(found)

    def remove_tree(self, path: str) -> None:
        self.fs.rm(_escaped(path), recursive=True)


def entry_mark(entry: Mapping[str, Any]) -> str:
    """The mark of a file, from fsspec's entry.

    Raises:
        StorageError: the store tells nothing that could be one.
    """
    for key in (*_ETAGS, *_TIMES):
        if entry.get(key) is not None:
            return str(entry[key]).strip('"')
    raise StorageError("the store tells neither etags nor modification times of its files")


def _escaped(path: str) -> str:
    """A pattern of fsspec that only ``path`` matches: ``AbstractFileSystem.rm`` expands what it is given."""
    return _MAGIC.sub(r"[\g<0>]", path)
