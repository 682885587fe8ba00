"""Deliveries to databases: parts are loaded beside the target, and one transaction moves them and says so."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from falcon_assets.errors import DatasourceError, count_of
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import LoadedPart, WriteRequest
from falcon_assets.features.datasources.row_move import RowMove
from falcon_assets.model.instant import format_instant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DELIVERIES = "falcon_deliveries"
"""The table with what was delivered to the tables beside it, written with the data itself."""
LOCK_SECONDS = 300
"""How long a statement waits for rows or a table that others have locked."""
Ask: TypeAlias = Callable[[str], Sequence[tuple[Any, ...]]]
"""Executes a statement in the connection of the delivery, and returns its rows."""


@dataclass(frozen=True)
class DeliveryLog:
    """Deliveries of a feed to a table, in :data:`DELIVERIES`.

    Attributes:
        table: In SQL.
        target: Name of the table that is delivered to.
        quoted: How a name is written in SQL.
        literal: How a text, a number or an instant is written in SQL; ``read`` how an instant is read.
    """

    ask: Ask
    table: str
    target: str
    request: WriteRequest
    quoted: Callable[[str], str]
    literal: Callable[[object], str]
    read: Callable[[Any], datetime] = lambda instant: instant

    def rows(self) -> int | None:
        """How many rows the execution had; None: it was not delivered."""
        found = self.ask(
            f"SELECT {self.quoted('rows')} FROM {self.table} WHERE execution = {self.literal(self.request.execution)}"
        )
        return int(found[0][0]) if found else None

    def last(self) -> str | None:
        """The execution by which the instance was delivered last; None: by none."""
        own = f"{self._of_feed} AND instance = {self.literal(self.request.start)}"
        found = self.ask(f"SELECT execution FROM {self.table} WHERE {own} ORDER BY number DESC LIMIT 1")
        return str(found[0][0]) if found else None

    def newest(self) -> datetime | None:
        """The newest instance of the feed that was delivered; None: there is none."""
        ((newest,),) = self.ask(f"SELECT max(instance) FROM {self.table} WHERE {self._of_feed}")
        return self.read(newest) if newest is not None else None

    def add(self, rows: int) -> None:
        request = self.request
        known = (request.execution, self.target, request.feed, request.cluster, request.start, request.version, rows)
        values = ", ".join(map(self.literal, known))
        columns = f"execution, target, feed, cluster, instance, version, {self.quoted('rows')}"
        self.ask(f"INSERT INTO {self.table} ({columns}) VALUES ({values})")

    @property
    def _of_feed(self) -> str:
        target, feed, cluster = map(self.literal, (self.target, self.request.feed, self.request.cluster))
        return f"target = {target} AND feed = {feed} AND cluster = {cluster}"


@dataclass(kw_only=True)
class StagedDelivery(ABC):
    """A delivery that is open.

    Attributes:
        shown: The target, for people.
        key: Of what is staged.
        delivered: How many rows it had, where the same execution was delivered before.
        before: The execution by which the instance had been delivered when this was opened.
        finds_several: Whether the database itself refuses several rows with one key.
    """

    finds_several: ClassVar[bool] = True
    access: Access
    request: WriteRequest
    shown: str
    key: str
    delivered: int | None = None
    before: str | None = None

    def look(self) -> None:
        """Asks what was delivered."""
        self.delivered, self.before = self.log.rows(), self.log.last()

    @property
    @abstractmethod
    def log(self) -> DeliveryLog: ...

    @property
    @abstractmethod
    def move(self) -> RowMove: ...

    @abstractmethod
    def ask(self, statement: str) -> Sequence[tuple[Any, ...]]:
        """As :data:`Ask` says."""

    @abstractmethod
    def tables(self, loaded: Sequence[LoadedPart]) -> list[str]:
        """The tables of parts that have rows, in SQL."""

    @abstractmethod
    def transaction(self, tables: Sequence[str]) -> AbstractContextManager[None]:
        """Lets no other delivery to the target be committed meanwhile; errors become DatasourceError."""

    @abstractmethod
    def expression(self, name: str, spark_type: str) -> str:
        """Spark SQL that makes what tasks load from a column of the feed."""

    def arranged(self, frame: DataFrame, parts: int) -> DataFrame:
        """What tasks load, in so many partitions at most."""
        from pyspark.sql import functions as sf  # noqa: PLC0415 - datasources are known without Spark

        columns = [
            sf.expr(self.expression(one.name, one.dataType.simpleString())).alias(one.name) for one in frame.schema
        ]
        return frame.select(*columns).coalesce(parts)

    def commit(self, loaded: Sequence[LoadedPart], last: Callable[[], None]) -> int:
        """As :class:`.TargetWriting` says."""
        tables = self.tables(loaded)
        rows = sum(one.rows for one in loaded)
        with self.transaction(tables):
            if (delivered := self.log.rows()) is not None:
                return delivered  # by another attempt, which was taken for dead
            self._require_turn()
            self._require_whole(tables, rows)
            for statement in self.move.statements(tables):
                self.ask(statement)
            self.log.add(rows)
            last()
        return rows

    def _require_turn(self) -> None:
        if self.log.last() != self.before:
            raise DatasourceError(
                f"{self.instance} was delivered by another attempt while this one was loading: nothing is written"
            )
        newest = self.log.newest() if self.request.declared.load == "replace" else None
        if newest and newest > self.request.start:
            raise DatasourceError(
                f"{self.shown} has {format_instant(newest)}, which is newer than {self.instance}, "
                "and load: replace keeps the newest instance: nothing is written"
            )

    def _require_whole(self, tables: Sequence[str], rows: int) -> None:
        """A server that crashed may empty them; and nobody but the tasks should have written there."""
        there = sum(self.ask(f"SELECT count(*) FROM {table}")[0][0] for table in tables)
        if there != rows:
            raise DatasourceError(f"{self.instance}: {there} of {rows} loaded rows are there: nothing is written")
        for name in self.move.key if tables else ():
            key = self.move.quoted(name)
            ((nulls,),) = self.ask(f"SELECT count(*) FROM ({self.move.rows(tables)}) loaded WHERE {key} IS NULL")
            if nulls:
                raise DatasourceError(
                    f"{self.instance} has {count_of(nulls, 'row')} without {name}, which is in the key"
                )
        if self.move.key and tables and not self.finds_several and (said := self.several_by_key(tables)):
            raise DatasourceError(said)

    def several_by_key(self, tables: Sequence[str]) -> str | None:
        """Says that the instance has several rows for a key; None: it has not."""
        key = ", ".join(map(self.move.quoted, self.move.key))
        several = f"SELECT 1 AS one FROM ({self.move.rows(tables)}) loaded GROUP BY {key} HAVING count(*) > 1"
        ((number,),) = self.ask(f"SELECT count(*) FROM ({several}) several")
        if not number:
            return None
        by = ", ".join(self.move.key)
        values = count_of(number, "value")
        return f"{self.instance} has several rows for {values} by the key {by}: a key has one row in an instance"

    @property
    def instance(self) -> str:
        """For people."""
        return f"{self.request.feed} {format_instant(self.request.start)}"
