"""Deliveries to PostgreSQL: parts are loaded beside the target, and one transaction moves them and says so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import psycopg2
from psycopg2 import errors
from psycopg2.extensions import connection as Connection  # noqa: N812 - it is a class

from falcon_assets.base.cancellation import current_cancellation
from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import LoadedPart, WriteRequest
from falcon_assets.features.datasources.row_move import RowMove
from falcon_assets.features.datasources.staged_delivery import LOCK_SECONDS, DeliveryLog, StagedDelivery
from falcon_assets.features.datasources.types.postgresql.connecting import connected, sentence
from falcon_assets.features.datasources.types.postgresql.deliveries import lock_deliveries, prepare_deliveries
from falcon_assets.features.datasources.types.postgresql.staging import StagedColumn, StagingPart, drop_staging, new_key
from falcon_assets.features.datasources.types.postgresql.target import DIALECT, Target, target_of
from falcon_assets.features.datasources.types.postgresql.target_columns import quoted


@contextmanager
def open_writing(access: Access, request: WriteRequest) -> Iterator[PostgresqlWriting]:
    """Opens a delivery; raises DatasourceError where the target does not fit, with all that has to be changed."""
    with connected(access, seconds=None) as connection:
        connection.set_session(isolation_level="READ COMMITTED")
        with connection, connection.cursor() as cursor:
            target = target_of(cursor, access, request)
            table = prepare_deliveries(cursor, target.schema)
            drop_staging(cursor, target.schema)
            opened = PostgresqlWriting(access, request, connection, target, str(target), table, new_key(cursor))
            opened.delivered, opened.before = opened.log.rows(), opened.log.last()
        try:
            yield opened
        finally:
            opened.clean()


@dataclass
class PostgresqlWriting(StagedDelivery):
    """A delivery that is open.

    Attributes:
        deliveries: The table of deliveries, in SQL.
        key: Of its staging tables.
        delivered: How many rows it had, where the same execution was delivered before.
    """

    access: Access
    request: WriteRequest
    connection: Connection
    target: Target
    shown: str
    deliveries: str
    key: str
    delivered: int | None = None
    before: str | None = None

    @cached_property
    def log(self) -> DeliveryLog:
        return DeliveryLog(self.ask, self.deliveries, self.target.name, self.request, quoted, self._literal)

    @cached_property
    def part(self) -> StagingPart:
        fits = self.target.fits
        columns = tuple(StagedColumn(name, fit.type, fit.encoding) for name, fit in fits.items())
        share = self.request.rows_per_second
        return StagingPart(self.access, self.target.schema, self.key, columns, share)

    def expression(self, name: str, spark_type: str) -> str:
        return self.target.fits[name].expression.format("`" + name.replace("`", "``") + "`")

    def ask(self, statement: str) -> Sequence[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def tables(self, loaded: Sequence[LoadedPart]) -> list[str]:
        return [self.part.table(one.number, one.attempt) for one in loaded if one.rows]

    @contextmanager
    def transaction(self, tables: Sequence[str]) -> Iterator[None]:
        try:
            with current_cancellation().ended_by(self._cancel), self.connection, self.connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
                lock_deliveries(cursor, self.target.oid)
                yield
        except psycopg2.Error as error:
            raise DatasourceError(f"datasource {self.access.name!r}: {self._explained(error, tables)}") from error

    def clean(self) -> None:
        """Drops what is left of its staging tables, if the server still answers."""
        with suppress(psycopg2.Error), self.connection, self.connection.cursor() as cursor:
            drop_staging(cursor, self.target.schema, self.key)

    @cached_property
    def move(self) -> RowMove:
        declared, target = self.request.declared, self.target
        moment, until = (
            self._literal(DIALECT.moment(target.filled, one, self.request.timezone))
            for one in (self.request.start, self.request.end)
        )
        columns = [(name, fit.moved.format(quoted(name))) for name, fit in target.fits.items()]
        return RowMove(quoted, declared.load, target.sql, columns, declared.partition, moment, until)

    def _literal(self, value: object) -> str:
        with self.connection.cursor() as cursor:
            return cursor.mogrify("%s", (value,)).decode()

    def _cancel(self) -> None:
        with suppress(psycopg2.Error):
            self.connection.cancel()

    def _explained(self, error: psycopg2.Error, tables: Sequence[str]) -> str:
        """The error with what can be done; the statement is rolled back."""
        if isinstance(error, errors.LockNotAvailable):
            return f"others have locked rows of {self.target} for {LOCK_SECONDS} seconds: nothing is written"
        if isinstance(error, errors.UniqueViolation) and not self.move.key:
            return f"{sentence(error)}: load: {{upsert: {{key: [...]}}}} replaces rows with the same key"
        if isinstance(error, errors.CardinalityViolation) and self.move.key:
            with self.connection:
                return self.several_by_key(tables) or sentence(error)
        if isinstance(error, psycopg2.DataError) and (column := self._unread(tables)):
            return f"column {column}: {sentence(error)}"
        return sentence(error)

    def _unread(self, tables: Sequence[str]) -> str | None:
        """The column that was loaded as text, and has text that its type in the target does not have."""
        for name, fit in self.target.fits.items():
            if fit.moved == "{}":
                continue
            for table in tables:
                try:
                    with self.connection:
                        self.ask(f"SELECT count({fit.moved.format(quoted(name))}) FROM {table}")
                except psycopg2.DataError:
                    return name
        return None
