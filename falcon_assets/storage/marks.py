"""Marks: what shows, without reading it, that a file was written anew."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from fsspec import AbstractFileSystem

from falcon_assets.errors import StorageError
from falcon_assets.storage.file_reading import is_local

_ETAGS = ("ETag", "etag", "md5Hash", "generation")
"""What says by itself that a content is another one: S3, abfs, gs."""
_TIMES = ("LastModified", "last_modified", "updated", "modified", "modificationTime", "mtime", "created")


def mark_of(fs: AbstractFileSystem, path: str) -> str:
    """The mark of one file.

    Raises:
        OSError: as the store says.
    """
    return local_mark(os.stat(path)) if is_local(fs) else entry_mark(fs.info(path))  # noqa: PTH116 - a text


def local_mark(status: os.stat_result) -> str:
    """The mark of a local file."""
    return f"{status.st_mtime_ns:x}-{status.st_ino:x}"


def entry_mark(entry: Mapping[str, Any]) -> str:
    """The mark of a file in another store, from fsspec's entry.

    Raises:
        StorageError: the store tells nothing that could be one.
    """
    for key in (*_ETAGS, *_TIMES):
        if entry.get(key) is not None:
            return str(entry[key]).strip('"')
    raise StorageError("the store tells neither etags nor modification times of its files")
