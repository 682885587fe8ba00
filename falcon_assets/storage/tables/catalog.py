"""Tables and their partitions: the protocol that each kind of catalog fulfils."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa


Values: TypeAlias = tuple[str, ...]
"""Of a partition, in the order of the table's keys."""


@dataclass(frozen=True)
class Column:
    name: str
    type: str

    def __str__(self) -> str:
        return f"{self.name} {self.type}"


@dataclass(frozen=True)
class TableLayout:
    """A catalog's description of a table.

    Attributes:
        columns: Those in its files, without the partition keys.
        location: URL of its folder.
        format: Spark's name of the file format; "" if Spark reads no such files by path.
    """

    name: str
    columns: tuple[Column, ...]
    keys: tuple[Column, ...]
    location: str
    format: str

    @property
    def key_names(self) -> Values:
        return tuple(key.name for key in self.keys)


@dataclass(frozen=True)
class Partition:
    """A partition that is there.

    Attributes:
        places: URLs of its folder, or of its files.
        version: Changes whenever its data does: 128 bits, hexadecimal.
        files: Count of data files; 0 if the catalog does not know, as for ``bytes``.
        records: Their rows; None if the catalog does not know.
    """

    values: Values
    places: tuple[str, ...]
    version: str
    files: int
    bytes: int
    format: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    records: int | None = None


@dataclass(frozen=True)
class NewPartition:
    """The new state of a partition.

    Attributes:
        places: URLs of a folder with data files of the table's format, or of such files, without the keys.
        files: URLs of the files in the folder, if the catalog is not to look for them.
    """

    places: tuple[str, ...]
    records: int | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()


class TableCatalog(ABC):
    """The tables of one registry; every method makes a few calls, for any number of partitions.

    All raise UnreachableError if the catalog does not answer, and StorageError with what it refuses.
    """

    keeps_history = False
    """Whether older states of a table can be read as long as their files are there."""
    keeps_spellings = False
    """Whether values of keys that are numbers or dates keep the spelling of their writer."""
    says_urls_of_hadoop = False
    """Whether its readers expect Hadoop's URLs (``s3a://``), and not those of the store itself."""

    def __init__(self, cluster: str, shown: str) -> None:
        self.cluster = cluster
        self.endpoint = shown

    @abstractmethod
    def layout(self, database: str, table: str) -> TableLayout | None:
        """None: there is no table."""

    @abstractmethod
    def values(self, database: str, table: str, fixed: Mapping[str, str]) -> list[Values]:
        """Returns the partitions, unordered; ``fixed`` selects by canonical values, by lower-case names of keys."""

    @abstractmethod
    def partitions(self, database: str, table: str, wanted: Sequence[Values]) -> dict[Values, Partition]: ...

    def as_written(
        self, database: str, table: str, partitions: Sequence[Partition]
    ) -> list[tuple[Partition, tuple[Column, ...]]]:
        """Returns the partitions, or parts of them, with the table's columns as their files name them; none: alike."""
        return [(one, ()) for one in partitions]

    def changed_at(self, database: str, table: str) -> datetime | None:
        """Returns when anything in the table changed last; None: the catalog does not know."""
        return None

    @abstractmethod
    def create(
        self, database: str, table: str, columns: pa.Schema, keys: Sequence[str], kind: str, location: str
    ) -> None:
        """Makes a table, unless it exists; ``keys``, which are texts, are not in ``columns``, ``kind`` is a format."""

    @abstractmethod
    def add_columns(self, database: str, table: str, columns: pa.Schema) -> None:
        """Adds the columns with new names at the end; null in the partitions that are there."""

    @abstractmethod
    def drop(self, database: str, table: str, partitions: Sequence[Partition]) -> None:
        """Drops partitions that are still there, not their files; StorageError: one has changed, all are unchanged."""

    def switch(
        self, database: str, table: str, values: Values, folder: str, said: Mapping[str, str], before: Partition | None
    ) -> Partition:
        was = {values: before} if before else {}
        return self.switch_all(database, table, {values: NewPartition((folder,))}, said, was)[values]

    @abstractmethod
    def switch_all(
        self,
        database: str,
        table: str,
        new: Mapping[Values, NewPartition],
        said: Mapping[str, str],
        before: Mapping[Values, Partition],
    ) -> dict[Values, Partition]:
        """Makes ``new`` the partitions, and drops the others of ``before``; returns the new ones.

        Of each partition readers see the old or the new one. Iceberg switches all in one call; Hive adds in one, then
        replaces and drops some at a time. Raises StorageError if another writer changed one meanwhile.
        """
