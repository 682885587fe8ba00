"""Records of verified files, kept in the target's staging location so that no crash makes anybody copy them again."""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from json.encoder import encode_basestring_ascii as _quoted
from types import TracebackType

from fsspec import AbstractFileSystem

from falcon_assets.planning.replication.copy_plan import CopyRecord, ListedFile
from falcon_assets.storage.file_reading import is_local

_FLUSH_SECONDS = 2.0
"""Object stores cannot append, so what was verified in so many seconds becomes one object."""


class RecordLog:
    """Appends records, safely from several threads; each one outlives the process at once, or soon on object stores.

    Args:
        fs: Where the folder is.
        folder: Gets a file of this log's own.
    """

    def __init__(self, fs: AbstractFileSystem, folder: str) -> None:
        self._fs, self._folder = fs, folder
        self._lock, self._waiting, self._flushed = threading.Lock(), list[bytes](), time.monotonic()
        self._descriptor: int | None = None
        if is_local(fs):
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._descriptor = os.open(f"{folder}/{uuid.uuid4().hex}.jsonl", flags, 0o666)

    def __enter__(self) -> RecordLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
        else:
            with self._lock:
                self._flush()

    def add(self, record: CopyRecord) -> None:
        """Appends one.

        Raises:
            OSError: as the store says.
        """
        line = to_lines([record])
        if self._descriptor is not None:
            os.write(self._descriptor, line)
            return
        with self._lock:
            self._waiting.append(line)
            if time.monotonic() - self._flushed > _FLUSH_SECONDS:
                self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._fs.pipe_file(f"{self._folder}/{uuid.uuid4().hex}.jsonl", b"".join(self._waiting))
        self._waiting, self._flushed = [], time.monotonic()


def to_lines(records: Iterable[CopyRecord]) -> bytes:
    """The records as text, one line each; names are escaped, so that any name of a file system can be said."""
    return "".join(map(_line, records)).encode("ascii")


def _line(record: CopyRecord) -> str:
    """What :func:`json.dumps` says of it, in less than half of the time: one is written for each small file."""
    name, size, source, target, checksum = record
    return f"[{_quoted(name)}, {size}, {_quoted(source)}, {_quoted(target)}, {_quoted(checksum)}]\n"


def from_lines(text: bytes) -> list[CopyRecord]:
    """The records of a text; a line that a crash cut off is left out."""
    whole = text[: text.rfind(b"\n") + 1]
    return [CopyRecord(*fields) for fields in map(json.loads, whole.splitlines())]


def read_records(fs: AbstractFileSystem, folder: str) -> list[CopyRecord]:
    """All records of the folder, in no particular order; none where it is not there.

    Raises:
        OSError: as the store says.
    """
    try:
        names = [str(name) for name in fs.ls(folder, detail=False) if str(name).endswith(".jsonl")]
    except FileNotFoundError:
        return []
    return [record for name in names for record in from_lines(fs.cat_file(name))]


def true_records(records: Iterable[CopyRecord], files: Mapping[str, ListedFile]) -> dict[str, CopyRecord]:
    """Those of ``records`` that speak of the files as they are now, by name.

    A file may have been verified several times, by several attempts, and written anew in between.
    """
    return {record.name: record for record in records if files.get(record.name) == (record.size, record.target_mark)}
