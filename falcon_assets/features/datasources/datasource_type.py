"""What a type of datasources says and does; ``types`` has a module for each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

from fsspec import AbstractFileSystem

from falcon_assets.features.datasources.access import Access
from falcon_assets.model.transfer import Export, Import

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_TYPES = "falcon_assets.features.datasources.types"


class SourceColumn(NamedTuple):
    """A column of a source, and how it travels.

    Attributes:
        source_type: As the source calls it.
        spark_type: In a feed, as Spark DDL.
        arrives_as: The Spark DDL type of what tasks deliver.
        expression: Spark SQL that makes the column of the feed from it; empty: it is that.
    """

    name: str
    source_type: str
    spark_type: str
    arrives_as: str
    expression: str = ""


class DatasetColumn(NamedTuple):
    """A column, as ``falcon datasource test`` shows it."""

    name: str
    source_type: str
    spark_type: str
    is_nullable: bool


class Dataset(NamedTuple):
    """A table, resource, file or topic of a datasource; ``columns`` empty: they are known only when it is read."""

    name: str
    columns: tuple[DatasetColumn, ...] = ()


@dataclass(frozen=True)
class ReadRequest:
    """What an instance of a feed needs of a source.

    Attributes:
        start: The nominal time of the instance; ``end``: that of the next one.
        low: The high watermark of the instance before, as its type wrote it; None: there is none.
        upto: The high watermark that it had when it was read before, where a later instance went on from there.
        parts: In how many parts it is to be read, at most.
        schema: Of the feed, as Spark DDL; None: it declares none.
    """

    declared: Import
    start: datetime
    end: datetime
    low: str | None
    upto: str | None
    parts: int
    schema: str | None = None


class ReadPart(Protocol):
    """A part of a source that a task of Spark reads, from any machine; it can be pickled, and read again."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields rows with all columns, as they arrive; raises DatasourceError."""


class SourceReading(Protocol):
    """A consistent view of a source, while it is open: all parts see the same moment.

    Attributes:
        columns: Those that are taken, in order.
        parts: Together they are all rows, each once; empty: there are none.
        low: From where changes are read; None: from the beginning, or the extract knows no changes.
        high: Up to where they are read, from where the next instance goes on; None: the extract knows no changes.
        behind: What the next instance reads although it is there already, and why; None: nothing.
    """

    @property
    def columns(self) -> Sequence[SourceColumn]: ...
    @property
    def parts(self) -> Sequence[ReadPart]: ...
    @property
    def low(self) -> str | None: ...
    @property
    def high(self) -> str | None: ...
    @property
    def behind(self) -> str | None: ...


@dataclass(frozen=True)
class WriteRequest:
    """What an instance of a feed delivers to a target.

    Attributes:
        feed: Name of the feed, ``cluster`` the one that it is read on.
        start: The nominal time of the instance; ``end``: that of the next one.
        timezone: Of the feed, for dates.
        version: Of the data that is delivered.
        columns: Name and Spark DDL type of those that are delivered, in order.
        execution: Identifies the delivery: what was written with it is not written again by another attempt.
        rows_per_second: The share of a part; None: any number.
    """

    declared: Export
    feed: str
    cluster: str
    start: datetime
    end: datetime
    timezone: str
    version: str
    columns: Sequence[tuple[str, str]]
    execution: str
    rows_per_second: float | None = None


class LoadedPart(NamedTuple):
    """A part that a task has loaded; ``attempt`` tells it from what other attempts at the same part have left."""

    number: int
    attempt: int
    rows: int


class WritePart(Protocol):
    """Loads rows beside the target, in a task of Spark, of which there may be several attempts; it can be pickled."""

    def load(self, number: int, attempt: int, batches: Iterator[pa.RecordBatch]) -> int:
        """Returns how many rows part ``number`` has; raises DatasourceError."""


class TargetWriting(Protocol):
    """A delivery, while it is open.

    Attributes:
        delivered: How many rows it had, where the same ``execution`` was delivered before; None: it was not.
        part: What the tasks do.
    """

    @property
    def delivered(self) -> int | None: ...
    @property
    def part(self) -> WritePart: ...

    def arranged(self, frame: DataFrame, parts: int) -> DataFrame:
        """What tasks load of the rows of the feed, in so many partitions at most."""

    def commit(self, loaded: Sequence[LoadedPart], last: Callable[[], None]) -> int:
        """Makes these parts visible at once, and that they are delivered; returns how many rows.

        ``last`` is called before that is final, and raises where it must not be. Raises DatasourceError.
        """


class DatasourceType(ABC):
    """A type of datasources.

    Attributes:
        name: As ``type`` of a datasource says it.
        endpoint: The form of its endpoints, for people.
        package: What has to be installed for its driver, in the words of pip; empty: nothing.
        module: A module of that, which is imported; empty: none.
        driver: The options of its driver that ``driver`` of a datasource may have; None: any.
        reads: What an import may name: ``table``, ``query``, ``path``, ``topic``.
        declares_columns: Whether other columns than those of the instance before mean that the source was changed.
        loads: What an export may do: ``insert``, ``upsert``, ``replace_partition``, ``replace``.
        loads_in_parallel: Whether several tasks may load an instance at once.
    """

    name: ClassVar[str]
    endpoint: ClassVar[str]
    package: ClassVar[str] = ""
    module: ClassVar[str] = ""
    driver: ClassVar[Collection[str] | None] = None
    reads: ClassVar[Collection[str]] = ()
    declares_columns: ClassVar[bool] = True
    loads: ClassVar[Collection[str]] = ()
    loads_in_parallel: ClassVar[bool] = True

    @abstractmethod
    def endpoint_problem(self, endpoint: str) -> str | None:
        """What is wrong with an endpoint, and how it is written; None: nothing."""

    @abstractmethod
    def require_reachable(self, access: Access) -> None:
        """Raises DatasourceError, within seconds, where nothing answers, or the login is refused."""

    @abstractmethod
    def datasets(self, access: Access, table: str | None = None) -> Iterator[Dataset]:
        """Yields what can be read there, or that one only; raises DatasourceError."""

    def file_system(self, access: Access) -> tuple[AbstractFileSystem, str]:
        """The file system of a file server, which can be pickled, and the folder on it that is the root.

        Raises DatasourceError where it cannot be reached.
        """
        raise NotImplementedError(self.name)

    def open_reading(self, access: Access, request: ReadRequest) -> AbstractContextManager[SourceReading]:
        """Raises DatasourceError where it cannot be read like that."""
        raise NotImplementedError(self.name)

    def open_writing(self, access: Access, request: WriteRequest) -> AbstractContextManager[TargetWriting]:
        """Raises DatasourceError where it cannot be written like that."""
        raise NotImplementedError(self.name)


@cache
def datasource_types() -> Mapping[str, DatasourceType]:
    """Returns the types by name: one for each module of their package."""
    found: dict[str, DatasourceType] = {}
    for module in iter_modules(import_module(_TYPES).__path__, f"{_TYPES}."):
        for one in vars(import_module(module.name)).values():
            if isinstance(one, type) and issubclass(one, DatasourceType) and one.__module__.startswith(module.name):
                found[one.name] = one()
    return found
