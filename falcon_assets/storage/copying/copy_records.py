"""Records of verified files, kept in the target's staging location so that no crash makes anybody copy them again."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from json.encoder import encode_basestring_ascii as _quoted

from fsspec import AbstractFileSystem

from falcon_assets.storage.copying.copy_plan import CopyRecord, ListedFile


class RecordLog(AbstractContextManager["RecordLog"]):
    """Adds records to a folder, safely from several threads; all of them outlive the process when it is left.

    Args:
        fs: Where the folder is.
        folder: Gets files of this log's own.

    Raises:
        OSError: as the store says.
    """

    @abstractmethod
    def __init__(self, fs: AbstractFileSystem, folder: str) -> None: ...

    @abstractmethod
    def add(self, record: CopyRecord) -> None:
        """Adds one.

        Raises:
            OSError: as the store says.
        """


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
    return {record.name: record for record in records if files.get(record.name) == (record.size, record.target_version)}
