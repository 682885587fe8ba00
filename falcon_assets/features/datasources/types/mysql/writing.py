"""Deliveries to MySQL: parts are loaded beside the target, and one transaction moves them and says so."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar

from pymysql import MySQLError

from falcon_assets.base.cancellation import current_cancellation
from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import LoadedPart, WriteRequest
from falcon_assets.features.datasources.row_move import RowMove
from falcon_assets.features.datasources.staged_delivery import (
    DELIVERIES,
    LOCK_SECONDS,
    DeliveryLog,
    StagedDelivery,
)
from falcon_assets.features.datasources.types.mysql.connecting import connected, quoted, sentence
from falcon_assets.features.datasources.types.mysql.fits import DIALECT, MysqlColumn, fit_of
from falcon_assets.features.datasources.types.mysql.row_literals import MysqlStagedColumn
from falcon_assets.features.datasources.types.mysql.staging import MysqlStagingPart, drop_staging, new_key, strict
from falcon_assets.features.datasources.types.mysql.tables import table_to_write, unique_keys

_CREATED = f"""
    CREATE TABLE IF NOT EXISTS {DELIVERIES} (
        number bigint AUTO_INCREMENT PRIMARY KEY,
        execution varchar(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL UNIQUE,
        target varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        feed varchar(39) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        cluster varchar(39) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
        instance datetime NOT NULL,
        version text NOT NULL,
        `rows` bigint NOT NULL,
        at timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
        KEY (target, feed, cluster, instance)
    ) ENGINE = InnoDB COMMENT 'Deliveries of feeds to tables of this database, each written with its rows'
"""
_WHILE_LOADING, _IN_TRANSACTION = 7 * 24 * 3600, 300
"""Seconds after which the server ends a silent session."""
_DUPLICATE, _LOCK_TIMEOUT = 1062, 1205


@contextmanager
def open_writing(access: Access, request: WriteRequest) -> Iterator[MysqlWriting]:
    """Opens a delivery; raises DatasourceError where the target does not fit, with all that has to be changed."""
    with connected(access, seconds=None) as cursor:
        strict(cursor)
        for name, value in (("innodb_lock_wait_timeout", LOCK_SECONDS), ("lock_wait_timeout", LOCK_SECONDS)):
            cursor.execute(f"SET SESSION {name} = {value}")
        cursor.execute(f"SET SESSION wait_timeout = {_WHILE_LOADING}")
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        table, columns = table_to_write(cursor, access, request)
        keys = lambda: unique_keys(cursor, table)  # noqa: E731 - asked only where it matters
        DIALECT.require_fit(request, columns, keys, quoted(table), f"{table} of {access.name}")
        cursor.execute(_CREATED)
        drop_staging(cursor)
        known = {one.name: one for one in columns}
        key = new_key(cursor)
        opened = MysqlWriting(access=access, request=request, cursor=cursor, shown=table, columns=known, key=key)
        opened.look()
        cursor.connection.commit()
        try:
            yield opened
        finally:
            opened.clean()


class MysqlRowMove(RowMove):
    """MySQL has no word for the key by which rows are replaced: rows that are there are updated, others added."""

    def inserts(self, tables: Sequence[str]) -> Iterator[str]:
        key, names = [quoted(one) for one in self.key], [quoted(one) for one in self.names]
        same = " AND ".join(f"own.{one} = loaded.{one}" for one in key)
        others = [f"own.{one} = loaded.{one}" for one in names if one not in key]
        filled = quoted(self.filled or "")
        for table in tables:
            rows = f"({self.rows([table])}) loaded"
            if key and others:
                # What a newer instance has written stays.
                older = f" WHERE own.{filled} IS NULL OR own.{filled} <= loaded.{filled}" if self.filled else ""
                yield f"UPDATE {self.table} own JOIN {rows} ON {same} SET {', '.join(others)}{older}"
            new = f" WHERE NOT EXISTS (SELECT 1 FROM {self.table} own WHERE {same})" if key else ""
            yield f"INSERT INTO {self.table} ({', '.join(names)}) SELECT {', '.join(names)} FROM {rows}{new}"


@dataclass(kw_only=True)
class MysqlWriting(StagedDelivery):
    """A delivery that is open; ``columns`` are all of the target, by name."""

    finds_several: ClassVar[bool] = False
    cursor: Any
    columns: dict[str, MysqlColumn]

    @cached_property
    def log(self) -> DeliveryLog:
        read = lambda instant: instant.replace(tzinfo=UTC)  # noqa: E731 - it is nothing without its name below
        return DeliveryLog(self.ask, DELIVERIES, self.shown, self.request, quoted, self._literal, read)

    @cached_property
    def part(self) -> MysqlStagingPart:
        staged = []
        for name, spark_type in self.request.columns:
            fit = fit_of(spark_type, self.columns[name])
            assert fit is not None
            staged.append(MysqlStagedColumn(self.columns[name], fit))
        return MysqlStagingPart(self.access, self.key, staged, self.request.rows_per_second)

    def expression(self, name: str, spark_type: str) -> str:
        fit = fit_of(spark_type, self.columns[name])
        assert fit is not None
        return fit.expression.format("`" + name.replace("`", "``") + "`")

    def ask(self, statement: str) -> Sequence[tuple[Any, ...]]:
        self.cursor.execute(statement)
        return list(self.cursor.fetchall())

    def tables(self, loaded: Sequence[LoadedPart]) -> list[str]:
        return [self.part.table(one.number, one.attempt) for one in loaded if one.rows]

    @contextmanager
    def transaction(self, tables: Sequence[str]) -> Iterator[None]:
        try:
            with current_cancellation().ended_by(self._cancel):
                self.ask(f"SET SESSION wait_timeout = {_IN_TRANSACTION}")
                if self.ask(f"SELECT GET_LOCK({self._literal(self._lock)}, {LOCK_SECONDS})") != [(1,)]:
                    raise DatasourceError(f"another delivery to {self.shown} takes more than {LOCK_SECONDS} seconds")
                yield
                self.cursor.connection.commit()
        except MySQLError as error:
            raise DatasourceError(f"datasource {self.access.name!r}: {self._explained(error)}") from error
        finally:
            with suppress(MySQLError):  # a dead session has neither a transaction nor locks
                self.cursor.connection.rollback()
                self.ask(f"SELECT RELEASE_LOCK({self._literal(self._lock)})")

    def clean(self) -> None:
        """Drops what is left of its tables, if the server still answers."""
        with suppress(MySQLError):
            drop_staging(self.cursor, self.key)

    @cached_property
    def move(self) -> MysqlRowMove:
        declared = self.request.declared
        filled = self.columns[declared.partition] if declared.partition else None
        is_date = filled is not None and filled.base == "date"
        moment, until = (
            # Another column would be compared with a bare text as text.
            ("DATE" if is_date else "TIMESTAMP") + self._literal(DIALECT.moment(filled, one, self.request.timezone))
            for one in (self.request.start, self.request.end)
        )
        columns = [(name, quoted(name)) for name, _ in self.request.columns]
        return MysqlRowMove(quoted, declared.load, quoted(self.shown), columns, declared.partition, moment, until)

    @cached_property
    def _lock(self) -> str:
        """Lets one delivery to a table be committed at a time; of all servers' names it has the database's in it."""
        ((database,),) = self.ask("SELECT DATABASE()")
        return "falcon_" + hashlib.sha256(f"{database}.{self.shown}".encode()).hexdigest()[:40]

    def _literal(self, value: object) -> str:
        if isinstance(value, datetime) and value.tzinfo:
            value = value.astimezone(UTC).replace(tzinfo=None)
        return str(self.cursor.mogrify("%s", (value,)))

    def _cancel(self) -> None:
        with suppress(MySQLError, DatasourceError), connected(self.access) as cursor:
            cursor.execute(f"KILL QUERY {self.cursor.connection.thread_id()}")

    def _explained(self, error: MySQLError) -> str:
        """The error with what can be done; the transaction is rolled back."""
        number = error.args[0] if error.args else 0
        if number == _LOCK_TIMEOUT:
            return f"others have locked rows of {self.shown} for {LOCK_SECONDS} seconds: nothing is written"
        if number == _DUPLICATE and not self.move.key:
            return f"{sentence(error)}: load: {{upsert: {{key: [...]}}}} replaces rows with the same key"
        return sentence(error)
