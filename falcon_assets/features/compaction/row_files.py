"""Data files as rows: each format says how its files are read and written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import IO, Protocol

import pyarrow as pa


@dataclass(frozen=True)
class DataFile:
    """A file of the instance, by its name below the path of that."""

    name: str
    size: int
    open: Callable[[], AbstractContextManager[IO[bytes]]]

    @property
    def folder(self) -> str:
        return self.name.rpartition("/")[0]


class RowWriter(Protocol):
    def write(self, rows: pa.Table) -> None: ...

    def close(self) -> None: ...


class RowFiles(ABC):
    """The files of one folder, which become one set of files; methods raise StorageError for what they cannot keep.

    Attributes:
        schema: Of the tables that :meth:`read` gives: the columns of all files, and perhaps others to sort by.
        columns: Those that are the content.
        keys: Those to sort by, the first counts most.
        suffix: Of the names of new files.
    """

    schema: pa.Schema
    columns: Sequence[str]
    keys: Sequence[str]
    suffix: str

    @abstractmethod
    def read(self, file: DataFile) -> Iterator[pa.Table]: ...

    @abstractmethod
    def writer(self, sink: IO[bytes]) -> RowWriter:
        """Writes rows, of which it takes the content only; what it has written is on its way to the sink at once."""

    def read_all(self, files: Iterable[DataFile]) -> Iterator[pa.Table]:
        for file in files:
            yield from self.read(file)
