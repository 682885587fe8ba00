"""The tables of a backup: read from one snapshot of a database, and written into another one in one transaction.

PostgreSQL itself describes them, so that a backup has the tables as they are, of whatever revision.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg2
import sqlalchemy
from sqlalchemy import Connection, func, select, text
from sqlalchemy.exc import DBAPIError

from falcon_assets.errors import SettingsError
from falcon_assets.features.backup.backup_file import PART_BYTES, BackupError, BackupReader, BackupWriter, KeptTable
from falcon_assets.history.dagster_internals.instance_config import dagster_revision
from falcon_assets.history.dagster_internals.storage import table_names
from falcon_assets.history.dagster_internals.tables import DAEMON
from falcon_assets.history.database import LEDGER_LOCK, lock_in_transaction, revision
from falcon_assets.history.platform.postgres import database_url, has_embedded, in_utc, unreachable
from falcon_assets.history.platform.reconnecting import waiting_in_c
from falcon_assets.history.tables import CLOCK, SCHEMA
from falcon_assets.settings import Settings

_LONGEST_WAIT = "60s"
_OF_PROCESSES = {DAEMON.name}
"""Tables whose rows are about processes that run now: a restored database has none of them."""
_SERIALS = {"smallint": "smallserial", "integer": "serial", "bigint": "bigserial"}
_TABLES = text(
    "SELECT c.oid, c.oid::regclass::text AS name, c.relname AS plain, n.nspname = :schema AS is_ledger "
    "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' "
    "AND (n.nspname = :schema OR n.nspname = current_schema() AND c.relname = ANY(:names)) ORDER BY 2"
)
_COLUMNS = text(
    "SELECT a.attrelid AS of, a.attname AS plain, quote_ident(a.attname) AS name, "
    "format_type(a.atttypid, a.atttypmod) AS type, "
    "a.attnotnull AS is_needed, a.attidentity AS identity, pg_get_expr(d.adbin, d.adrelid, true) AS preset, "
    "pg_get_serial_sequence(a.attrelid::regclass::text, a.attname) AS sequence "
    "FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum "
    "WHERE a.attrelid = ANY(:tables) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum"
)
_FINISHING = text(
    "SELECT 1 AS step, format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, "
    "pg_get_constraintdef(oid, true)) AS statement FROM pg_constraint "
    "WHERE conrelid = ANY(:tables) AND contype IN ('p', 'u', 'c', 'x') "
    "UNION ALL SELECT 2, pg_get_indexdef(indexrelid, 0, true) FROM pg_index WHERE indrelid = ANY(:tables) "
    "AND indexrelid NOT IN (SELECT conindid FROM pg_constraint WHERE contype IN ('p', 'u', 'x')) "
    "UNION ALL SELECT 3, format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, "
    "pg_get_constraintdef(oid, true)) FROM pg_constraint WHERE conrelid = ANY(:tables) AND contype = 'f' "
    "UNION ALL SELECT 4, format('COMMENT ON COLUMN %s.%I IS %L', attrelid::regclass, attname, description) "
    "FROM pg_description JOIN pg_attribute ON attrelid = objoid AND attnum = objsubid "
    "WHERE classoid = 'pg_class'::regclass AND objoid = ANY(:tables) AND objsubid > 0 "
    "UNION ALL SELECT 4, format('COMMENT ON TABLE %s IS %L', objoid::regclass, description) FROM pg_description "
    "WHERE classoid = 'pg_class'::regclass AND objoid = ANY(:tables) AND objsubid = 0 "
    "ORDER BY 1, 2"
)
_OURS = {"schema": SCHEMA}


@dataclass(frozen=True)
class Snapshot:
    """A database as it was at one moment."""

    _connection: Connection
    revision: str | None
    dagster_revision: str | None
    clock: str
    _tables: Sequence[Any]

    def copy_to(self, writer: BackupWriter) -> list[KeptTable]:
        """Copies all rows; raises SettingsError where the database does not answer any more."""
        columns = defaultdict[int, list[Any]](list)
        for one in self._connection.execute(_COLUMNS, {"tables": [table.oid for table in self._tables]}):
            columns[one.of].append(one)
        return [self._copied(table, columns[table.oid], writer) for table in self._tables]

    def finishing(self) -> list[str]:
        found = self._connection.execute(_FINISHING, {"tables": [table.oid for table in self._tables]})
        return [one.statement for one in found]

    def _copied(self, table: Any, columns: Sequence[Any], writer: BackupWriter) -> KeptTable:
        names = ", ".join(one.name for one in columns)
        member = f"database/{SCHEMA if table.is_ledger else 'dagster'}/{table.plain}"
        with writer.member(member) as file:
            if table.plain not in _OF_PROCESSES:
                _cursor(self._connection).copy_expert(f"COPY {table.name} ({names}) TO STDOUT", file, PART_BYTES)
        creation = f"CREATE TABLE {table.name} ({', '.join(map(_column, columns))})"
        sequences = {one.plain: self._value(one.sequence) for one in columns if one.sequence}
        return KeptTable(
            name=table.name,
            member=member,
            creation=creation,
            columns=tuple(one.name for one in columns),
            sequences=sequences,
        )

    def _value(self, sequence: str) -> tuple[int, bool]:
        """Of no snapshot: it is at least as high as the numbers in the rows."""
        found = self._connection.execute(text(f"SELECT last_value, is_called FROM {sequence}")).one()  # noqa: S608
        return found.last_value, found.is_called


def _column(one: Any) -> str:
    """PostgreSQL's declaration of a column."""
    kind = one.type
    if one.identity:
        kind += f" GENERATED {'ALWAYS' if one.identity == 'a' else 'BY DEFAULT'} AS IDENTITY"
    elif one.sequence:
        kind = _SERIALS[one.type]
    elif one.preset is not None:
        kind += f" DEFAULT {one.preset}"
    return f"{one.name} {kind}{' NOT NULL' if one.is_needed else ''}"


@contextmanager
def snapshot_of(settings: Settings) -> Iterator[Snapshot]:
    """Yields the database as it is now, while others go on to change it; its tables are neither made nor migrated.

    Raises SettingsError where there is no history, or the database does not answer.
    """
    if settings.database_url is None and not has_embedded(settings.home):
        raise SettingsError(f"there is nothing to back up: FALCON_HOME {settings.home} has no database yet")
    url = database_url(settings)
    engine = _engine(url)
    try:
        with engine.connect() as connection:
            schema = _schema(connection)
            _prepare(connection, schema)
            tables = _found(connection)
        if not tables:
            raise SettingsError("there is nothing to back up: the database has no tables of Falcon or Dagster yet")
        options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with waiting_in_c(), engine.connect().execution_options(**options) as connection:
            _prepare(connection, schema)
            # Nobody changes the tables themselves from here on; the snapshot begins with the next statement.
            names = ", ".join(one.name for one in tables)
            connection.exec_driver_sql(f"LOCK TABLE {names} IN ACCESS SHARE MODE")
            ledger = revision(connection)
            clock = connection.execute(select(CLOCK.c.tag)).scalar_one_or_none() if ledger else None
            yield Snapshot(connection, ledger, dagster_revision(connection)[0], clock or "", tables)
    except (DBAPIError, psycopg2.Error) as error:
        raise _failure(url, error) from error


def require_empty(settings: Settings) -> None:
    """Raises BackupError where the database has a history, and SettingsError where it does not answer."""
    url = database_url(settings)
    try:
        with _engine(url).connect() as connection:
            _prepare(connection, _schema(connection))
            _require_empty(connection)
    except DBAPIError as error:
        raise _failure(url, error) from error


def restore_database(settings: Settings, reader: BackupReader, finish: AbstractContextManager[None]) -> None:
    """Makes the tables of a backup, with their rows; all of them or, if anything fails, none.

    All is committed within ``finish``; if that fails before, nothing is kept.

    Raises:
        BackupError: the database has a history already.
        SettingsError: it does not answer, or refuses.
    """
    url = database_url(settings)
    contents = reader.contents
    try:
        with waiting_in_c(), _engine(url).connect() as connection:
            _prepare(connection, _schema(connection))
            lock_in_transaction(connection, LEDGER_LOCK)
            _require_empty(connection)
            if any(one.name.startswith(f"{SCHEMA}.") for one in contents.tables):
                connection.exec_driver_sql(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            for table in contents.tables:
                connection.exec_driver_sql(table.creation)
                with reader.open(table.member) as rows:
                    columns = ", ".join(table.columns)
                    _cursor(connection).copy_expert(f"COPY {table.name} ({columns}) FROM STDIN", rows, PART_BYTES)
                for column, (value, is_called) in table.sequences.items():
                    sequence = func.pg_get_serial_sequence(table.name, column)
                    connection.execute(select(func.setval(sequence, value, is_called)))
            for statement in contents.finishing:
                connection.exec_driver_sql(statement)
            connection.exec_driver_sql(f"ANALYZE {', '.join(one.name for one in contents.tables)}")
            with finish:
                connection.commit()
    except (DBAPIError, psycopg2.Error) as error:
        raise _failure(url, error) from error


def _require_empty(connection: Connection) -> None:
    if found := _found(connection):
        raise BackupError(
            f"the database has a history already, such as the table {found[0].name}: restore into an empty one, with "
            "another FALCON_DATABASE_URL or FALCON_HOME"
        )


def _found(connection: Connection) -> Sequence[Any]:
    return connection.execute(_TABLES, {**_OURS, "names": table_names()}).all()


def _schema(connection: Connection) -> str:
    """The schema of Dagster's tables, as PostgreSQL quotes it; raises SettingsError."""
    found: str | None = connection.execute(text("SELECT quote_ident(current_schema())")).scalar_one()
    if found is None:
        raise SettingsError("the database has no schema for Dagster's tables: see its search_path")
    return found


def _prepare(connection: Connection, schema: str) -> None:
    """Settings of a transaction: names of other schemas are qualified, and no time-out of the user's ends it."""
    connection.exec_driver_sql(f"SET LOCAL search_path = {schema}")
    for name, value in (
        *(("statement_timeout", "0"), ("idle_in_transaction_session_timeout", "0"), ("lock_timeout", _LONGEST_WAIT)),
        *(("client_encoding", "UTF8"), ("datestyle", "ISO"), ("intervalstyle", "postgres")),
    ):
        connection.exec_driver_sql(f"SET LOCAL {name} = '{value}'")


def _failure(url: str, error: DBAPIError | psycopg2.Error) -> SettingsError:
    origin = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(origin, psycopg2.OperationalError | psycopg2.InterfaceError):
        return unreachable(url, error)
    return SettingsError(f"the database refuses it: {str(origin).strip().partition(chr(10))[0]}")


def _cursor(connection: Connection) -> Any:
    return connection.connection.cursor()


def _engine(url: str) -> sqlalchemy.Engine:
    return sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool, hide_parameters=True, connect_args=in_utc(url))
