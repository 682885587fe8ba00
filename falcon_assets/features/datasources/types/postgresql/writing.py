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
from psycopg2.extensions import cursor as Cursor  # noqa: N812

from falcon_assets.base.cancellation import current_cancellation
from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import LoadedPart, WriteRequest
from falcon_assets.features.datasources.row_move import RowMove
from falcon_assets.features.datasources.staged_delivery import DELIVERIES, LOCK_SECONDS, DeliveryLog, StagedDelivery
from falcon_assets.features.datasources.types.postgresql.connecting import connected, sentence
from falcon_assets.features.datasources.types.postgresql.staging import StagedColumn, StagingPart, drop_staging, new_key
from falcon_assets.features.datasources.types.postgresql.target import DIALECT, Target, target_of
from falcon_assets.features.datasources.types.postgresql.target_columns import quoted

_LOCKS = 1_178_944_579
"""First number of the locks of deliveries; the second is that of a table, or 0 while the table above is made."""
_CREATED = """
    CREATE TABLE {table} (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        execution text NOT NULL UNIQUE,
        target text NOT NULL,
        feed text NOT NULL,
        cluster text NOT NULL,
        instance timestamptz NOT NULL,
        version text NOT NULL,
        rows bigint NOT NULL,
        at timestamptz NOT NULL DEFAULT clock_timestamp()
    );
    CREATE INDEX ON {table} (target, feed, cluster, instance);
    COMMENT ON TABLE {table} IS 'Deliveries of feeds to tables of this schema, each written with its rows';
"""


@contextmanager
def open_writing(access: Access, request: WriteRequest) -> Iterator[PostgresqlWriting]:
    """Opens a delivery; raises DatasourceError where the target does not fit, with all that has to be changed."""
    with connected(access, seconds=None) as connection:
        connection.set_session(isolation_level="READ COMMITTED")
        with connection, connection.cursor() as cursor:
            target = target_of(cursor, access, request)
            table = _prepare_deliveries(cursor, target.schema)
            drop_staging(cursor, target.schema)
            opened = PostgresqlWriting(
                access=access,
                request=request,
                connection=connection,
                target=target,
                shown=str(target),
                deliveries=table,
                key=new_key(cursor),
            )
            opened.look()
        try:
            yield opened
        finally:
            opened.clean()


@dataclass(kw_only=True)
class PostgresqlWriting(StagedDelivery):
    """A delivery that is open; ``deliveries`` is their table, in SQL."""

    connection: Connection
    target: Target
    deliveries: str

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
                _lock_deliveries(cursor, self.target.oid)
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


def _prepare_deliveries(cursor: Cursor, schema: str) -> str:
    """Creates the table where there is none; returns it in SQL."""
    table = f"{quoted(schema)}.{DELIVERIES}"
    if not _is_there(cursor, schema):
        cursor.execute("SELECT pg_advisory_xact_lock(%s, 0)", (_LOCKS,))
        if not _is_there(cursor, schema):
            cursor.execute(_CREATED.format(table=table))
    return table


def _is_there(cursor: Cursor, schema: str) -> bool:
    """Asks the table of tables: ``to_regclass`` may answer with what it knew before it waited for the lock."""
    there = "SELECT EXISTS (SELECT FROM pg_class WHERE relname = %s AND relnamespace = %s::regnamespace)"
    cursor.execute(there, (DELIVERIES, quoted(schema)))
    return cursor.fetchone() == (True,)


def _lock_deliveries(cursor: Cursor, table: int) -> None:
    """Lets no other delivery to the table of that number be committed until the end of the transaction."""
    cursor.execute("SELECT pg_advisory_xact_lock(%s, %s::bigint::bit(32)::int)", (_LOCKS, table))
