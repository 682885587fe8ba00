"""What a catalog does for tables and their partitions: the protocol that each kind of catalog fulfils."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa


Values: TypeAlias = tuple[str, ...]
"""The values of a partition, in the order of the table's keys."""


@dataclass(frozen=True)
class Column:
    """A column: its name, and its type as Spark's DDL has it."""

    name: str
    type: str

    def __str__(self) -> str:
        return f"{self.name} {self.type}"


@dataclass(frozen=True)
class TableLayout:
    """What a catalog says of a table.

    Attributes:
        name: ``database.table``.
        columns: Those in its files, without the partition keys.
        keys: The partition keys.
        location: URL of its folder.
        format: Of its files, as Spark names it; "" where Spark reads no such files by path.
    """

    name: str
    columns: tuple[Column, ...]
    keys: tuple[Column, ...]
    location: str
    format: str

    @property
    def key_names(self) -> Values:
        """The names of the keys."""
        return tuple(key.name for key in self.keys)


@dataclass(frozen=True)
class Partition:
    """A partition that is there.

    Attributes:
        values: Which one.
        places: URLs of its folder, or of its files.
        version: Changes whenever its data does: 128 bits, hexadecimal.
        files: How many data files it has; 0 where the catalog does not know.
        bytes: Their total size; 0 where the catalog does not know.
        format: Of its files, as :attr:`TableLayout.format`.
        parameters: What else the catalog has written down of it.
    """

    values: Values
    places: tuple[str, ...]
    version: str
    files: int
    bytes: int
    format: str
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class NewPartition:
    """What a partition is to be.

    Attributes:
        places: URLs of a folder with data files of the table's format, or of such files; they hold all but the keys.
        records: How many records they hold; None: that is not known.
        parameters: What was known of it, where it is to be what it was.
        files: URLs of the files in the folder, where the catalog is not to look for them.
    """

    places: tuple[str, ...]
    records: int | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()


class TableCatalog(ABC):
    """The tables of one registry. Every method makes a few calls, however many partitions it is about.

    All methods raise ``UnreachableError`` where the catalog does not answer, and ``StorageError`` with what it refuses.
    """

    keeps_history = False
    """Whether older states of a table can be read as long as their files are there."""
    keeps_spellings = False
    """Whether values of keys that are numbers or dates come as somebody wrote them, not in their one spelling."""
    says_urls_of_hadoop = False
    """Whether its readers are told URLs as Hadoop has them (``s3a://``), and not those of the store itself."""

    def __init__(self, cluster: str, shown: str) -> None:
        self.cluster = cluster
        """The cluster whose registry it is, for messages."""
        self.endpoint = shown
        """The registry's endpoint, without credentials."""

    @abstractmethod
    def layout(self, database: str, table: str) -> TableLayout | None:
        """What is known of the table; None where there is none."""

    @abstractmethod
    def values(self, database: str, table: str, fixed: Mapping[str, str]) -> list[Values]:
        """The partitions that are there, in no particular order.

        Args:
            database: Of the table.
            table: Is there.
            fixed: Only those with exactly these values, however they are spelled, by the lower-case names of their
                keys; :func:`.key_values.canonical`.
        """

    @abstractmethod
    def partitions(self, database: str, table: str, wanted: Sequence[Values]) -> dict[Values, Partition]:
        """Those of the wanted partitions that are there."""

    def as_written(
        self, database: str, table: str, partitions: Sequence[Partition]
    ) -> list[tuple[Partition, tuple[Column, ...]]]:
        """The partitions, or parts of them, each with the columns of the table as its files name them.

        Args:
            database: Of the table.
            table: Is there.
            partitions: As the catalog said them.

        Returns:
            No columns: its files name them as the table does.
        """
        return [(one, ()) for one in partitions]

    def changed_at(self, database: str, table: str) -> datetime | None:
        """When anything in the table, which is there, changed last; None where the catalog does not know."""
        return None

    @abstractmethod
    def create(
        self, database: str, table: str, columns: pa.Schema, keys: Sequence[str], kind: str, location: str
    ) -> None:
        """Makes a table; what another made meanwhile is left as it is.

        Args:
            database: Of the table.
            table: Its name.
            columns: Those in its files, without the partition keys.
            keys: The partition keys, which are texts.
            kind: Format of its files: ``parquet`` or ``orc``.
            location: URL of its folder.
        """

    @abstractmethod
    def add_columns(self, database: str, table: str, columns: pa.Schema) -> None:
        """Adds columns at the end; what has another name than any that is there. Others are passed over.

        In the partitions that are there they are null.

        Args:
            database: Of the table.
            table: Is there.
            columns: They, as files have them.
        """

    @abstractmethod
    def drop(self, database: str, table: str, partitions: Sequence[Partition]) -> None:
        """Takes partitions away; their files stay where they are. What is gone already is passed over.

        Raises:
            StorageError: one of them is another one by now; all of them are as they were.
        """

    def switch(
        self, database: str, table: str, values: Values, folder: str, said: Mapping[str, str], before: Partition | None
    ) -> Partition:
        """As :meth:`switch_all`, of one partition: in one call, so that readers see the old or the new one."""
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
        """Lets partitions be what is in folders from now on, and takes away those that were and are not among them.

        Of each partition readers see the old or the new one. Iceberg switches all of them in one call; Hive adds what
        is new in one, then replaces and then takes away some at a time.

        Args:
            database: Of the table.
            table: Is there.
            new: What they are to be; one at least.
            said: What is to be known of them, by name.
            before: Those that were there when the new ones were begun.

        Returns:
            The new ones as they are now.

        Raises:
            StorageError: somebody else changed one of them meanwhile.
        """
