"""Deliveries to PostgreSQL: parts are loaded beside the target, and one transaction moves them and says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property

import psycopg2
from psycopg2 import errors
from psycopg2.extensions import connection as Connection  # noqa: N812 - it is a class
from psycopg2.extensions import cursor as Cursor  # noqa: N812

from falcon_assets.base.cancellation import current_cancellation
from falcon_assets.errors import DatasourceError, count_of
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import LoadedPart, WriteRequest
from falcon_assets.features.datasources.types.postgresql.connecting import connected, sentence
from falcon_assets.features.datasources.types.postgresql.deliveries import Deliveries
from falcon_assets.features.datasources.types.postgresql.row_move import RowMove
from falcon_assets.features.datasources.types.postgresql.staging import StagedColumn, StagingPart, drop_staging, new_key
from falcon_assets.features.datasources.types.postgresql.target import Target, target_of
from falcon_assets.features.datasources.types.postgresql.target_columns import quoted
from falcon_assets.model.instant import format_instant

_LOCK_SECONDS = 300
"""How long a statement waits for rows or a table that others have locked."""


@contextmanager
def open_writing(access: Access, request: WriteRequest) -> Iterator[PostgresqlWriting]:
    """Opens a delivery; raises DatasourceError where the target does not fit, with all that has to be changed."""
    with connected(access, seconds=None) as connection:
        connection.set_session(isolation_level="READ COMMITTED")
        with connection, connection.cursor() as cursor:
            target = target_of(cursor, access, request)
            deliveries = Deliveries(target.schema, target.name, target.oid)
            deliveries.prepare(cursor)
            drop_staging(cursor, target.schema)
            opened = PostgresqlWriting(
                access,
                request,
                connection,
                target,
                deliveries,
                new_key(cursor),
                deliveries.rows(cursor, request.execution),
                deliveries.last(cursor, request),
            )
        try:
            yield opened
        finally:
            opened.clean()


@dataclass(frozen=True)
class PostgresqlWriting:
    """A delivery that is open.

    Attributes:
        key: Of its staging tables.
        delivered: How many rows it had, where the same execution was delivered before.
        before: The execution by which the instance had been delivered when this was opened.
    """

    access: Access
    request: WriteRequest
    connection: Connection
    target: Target
    deliveries: Deliveries
    key: str
    delivered: int | None
    before: str | None

    @cached_property
    def part(self) -> StagingPart:
        fits = self.target.fits
        columns = tuple(StagedColumn(name, fit.type, fit.encoding) for name, fit in fits.items())
        share = self.request.rows_per_second
        return StagingPart(self.access, self.target.schema, self.key, columns, share)

    def expression(self, name: str, spark_type: str) -> str:
        return self.target.fits[name].expression.format("`" + name.replace("`", "``") + "`")

    def commit(self, loaded: Sequence[LoadedPart], last: Callable[[], None]) -> int:
        tables = [self.part.table(one.number, one.attempt) for one in loaded if one.rows]
        rows = sum(one.rows for one in loaded)
        try:
            with current_cancellation().ended_by(self._cancel), self.connection, self.connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'")
                self.deliveries.lock(cursor)
                if (delivered := self.deliveries.rows(cursor, self.request.execution)) is not None:
                    return delivered  # by another attempt, which was taken for dead
                self._require_turn(cursor)
                self._require_whole(cursor, tables, rows)
                for statement in self._move.statements(tables):
                    cursor.execute(statement)
                self.deliveries.add(cursor, self.request, rows)
                for table in tables:
                    cursor.execute(f"DROP TABLE {table}")
                last()
        except psycopg2.Error as error:
            raise DatasourceError(f"datasource {self.access.name!r}: {self._explained(error, tables)}") from error
        return rows

    def clean(self) -> None:
        """Drops what is left of its staging tables, if the server still answers."""
        with suppress(psycopg2.Error), self.connection, self.connection.cursor() as cursor:
            drop_staging(cursor, self.target.schema, self.key)

    @cached_property
    def _move(self) -> RowMove:
        declared, target = self.request.declared, self.target
        with self.connection.cursor() as cursor:
            moment, until = (
                cursor.mogrify("%s", (target.moment(one, self.request.timezone),)).decode()
                for one in (self.request.start, self.request.end)
            )
        columns = [(name, fit.moved.format(quoted(name))) for name, fit in target.fits.items()]
        return RowMove(declared.load, target.sql, columns, declared.partition, moment, until)

    def _cancel(self) -> None:
        with suppress(psycopg2.Error):
            self.connection.cancel()

    def _require_turn(self, cursor: Cursor) -> None:
        if self.deliveries.last(cursor, self.request) != self.before:
            raise DatasourceError(
                f"{self._instance} was delivered by another attempt while this one was loading: nothing is written"
            )
        newest = self.deliveries.newest(cursor, self.request) if self.request.declared.load == "replace" else None
        if newest and newest > self.request.start:
            raise DatasourceError(
                f"{self.target} has {format_instant(newest)}, which is newer than {self._instance}, "
                "and load: replace keeps the newest instance: nothing is written"
            )

    def _require_whole(self, cursor: Cursor, tables: Sequence[str], rows: int) -> None:
        """A server that crashed empties them; and nobody but the tasks should have written there."""
        there = 0
        for table in tables:
            cursor.execute(f"SELECT count(*) FROM {table}")
            there += (cursor.fetchone() or (0,))[0]
        if there != rows:
            raise DatasourceError(f"{self._instance}: {there} of {rows} loaded rows are there: nothing is written")
        for name in self._move.key if tables else ():
            cursor.execute(f"SELECT count(*) FROM ({self._move.rows(tables)}) rows WHERE {quoted(name)} IS NULL")
            if nulls := (cursor.fetchone() or (0,))[0]:
                raise DatasourceError(
                    f"{self._instance} has {count_of(nulls, 'row')} without {name}, which is in the key"
                )

    @property
    def _instance(self) -> str:
        return f"{self.request.feed} {format_instant(self.request.start)}"

    def _explained(self, error: psycopg2.Error, tables: Sequence[str]) -> str:
        """The error with what can be done; the statement is rolled back."""
        if isinstance(error, errors.LockNotAvailable):
            return f"others have locked rows of {self.target} for {_LOCK_SECONDS} seconds: nothing is written"
        if isinstance(error, errors.UniqueViolation) and not self._move.key:
            return f"{sentence(error)}: load: {{upsert: {{key: [...]}}}} replaces rows with the same key"
        if isinstance(error, errors.CardinalityViolation) and self._move.key:
            key = ", ".join(self._move.key)
            return f"{self._instance} has {self._duplicates(tables)} by the key {key}: a key has one row in an instance"
        if isinstance(error, psycopg2.DataError) and (column := self._unread(tables)):
            return f"column {column}: {sentence(error)}"
        return sentence(error)

    def _duplicates(self, tables: Sequence[str]) -> str:
        key = ", ".join(map(quoted, self._move.key))
        several = f"SELECT 1 FROM ({self._move.rows(tables)}) rows GROUP BY {key} HAVING count(*) > 1"
        with self.connection, self.connection.cursor() as cursor:
            cursor.execute(f"SELECT count(*) FROM ({several}) several")
            return f"several rows for {count_of((cursor.fetchone() or (0,))[0], 'value')}"

    def _unread(self, tables: Sequence[str]) -> str | None:
        """The column that was loaded as text, and has text that its type in the target does not have."""
        for name, fit in self.target.fits.items():
            if fit.moved == "{}":
                continue
            for table in tables:
                try:
                    with self.connection, self.connection.cursor() as cursor:
                        cursor.execute(f"SELECT count({fit.moved.format(quoted(name))}) FROM {table}")
                except psycopg2.DataError:
                    return name
        return None
