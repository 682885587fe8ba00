"""Deliveries to a file of SQLite: one task loads a file beside it, and one transaction moves that and says so."""

from __future__ import annotations

import fcntl
import math
import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from uuid import uuid4

from falcon_assets.base.cancellation import current_cancellation
from falcon_assets.base.file_locks import opened as lock_file
from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import LoadedPart, WriteRequest
from falcon_assets.features.datasources.pace import paced
from falcon_assets.features.datasources.row_move import RowMove
from falcon_assets.features.datasources.staged_delivery import (
    DELIVERIES,
    LOCK_SECONDS,
    DeliveryLog,
    StagedDelivery,
)
from falcon_assets.features.datasources.target_fitness import TargetDialect
from falcon_assets.features.datasources.types.sqlite.tables import (
    database_file,
    quoted,
    said_of,
    spark_type,
    table_names,
)
from falcon_assets.features.datasources.unknown_tables import no_such_table

if TYPE_CHECKING:
    import pyarrow as pa

_CREATED = f"""
    CREATE TABLE IF NOT EXISTS {DELIVERIES} (
        number INTEGER PRIMARY KEY, execution TEXT NOT NULL UNIQUE, target TEXT NOT NULL, feed TEXT NOT NULL,
        cluster TEXT NOT NULL, instance TEXT NOT NULL, version TEXT NOT NULL, rows INTEGER NOT NULL,
        at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now'))
    )
"""
_COLUMNS = (
    'SELECT name, type, "notnull", dflt_value IS NOT NULL, pk, hidden FROM pragma_table_xinfo(?) WHERE hidden <> 1'
)
_INDEXES = 'SELECT name FROM pragma_index_list(?) WHERE "unique" AND NOT partial'
_STAGING = re.compile(r"\.falcon_staging_([0-9a-f]{15})(?:_\d+_\d+)?(?:-journal)?$")
_WHOLE = re.compile(r"boolean|(?:tiny|small|big)?int")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_NESTED = re.compile(r"(?:array|struct|map)<|variant")
_STRING = re.compile(r"string|(?:var)?char\(\d+\)|string collate .*|void")
_TIMES = ("date", "timestamp", "timestamp_ntz")
_EXACT_DIGITS = 15
"""Of numbers that SQLite keeps as doubles."""
_NATURAL = {"double": "REAL", "float": "REAL", "binary": "BLOB"}


class SqliteColumn(NamedTuple):
    """A column of a target; ``affinity`` is the Spark type by SQLite's rules, empty: it takes values as they come."""

    name: str
    type: str
    affinity: str
    is_required: bool
    is_filled: bool
    is_generated: bool


def _fits(kind: str, column: SqliteColumn) -> bool:
    has, decimal = column.affinity, _DECIMAL.fullmatch(kind)
    if _STRING.fullmatch(kind) or _NESTED.match(kind):
        return has in ("string", "")
    if kind == "binary":
        return has in ("binary", "")
    if kind in ("float", "double"):
        return has in ("double", "")
    if _WHOLE.fullmatch(kind):
        return has in ("bigint", "numeric", "") or (has == "double" and kind != "bigint")
    if decimal:
        return has in ("string", "") or (has == "numeric" and int(decimal[1]) <= _EXACT_DIGITS)
    return kind in _TIMES and has in ("string", "numeric", "")


def _natural_type(kind: str, _: bool) -> str:
    return "INTEGER" if _WHOLE.fullmatch(kind) else _NATURAL.get(kind, "TEXT")


def _zone_of(column: SqliteColumn) -> str:
    if column.affinity not in ("string", "numeric", ""):
        raise KeyError(column.type)
    return "date" if column.type == "date" else "UTC"


_DIALECT = TargetDialect[SqliteColumn](
    quoted, _fits, _natural_type, "", "CREATE UNIQUE INDEX {index} ON {table} ({names})", "DATETIME", _zone_of
)


@dataclass(frozen=True)
class SqliteStagingPart:
    """Loads a part into a file of its own; it can be pickled."""

    access: Access
    key: str
    columns: Sequence[str]
    rows_per_second: float | None

    def file(self, number: int, attempt: int) -> Path:
        return staging_file(self.access, f"{self.key}_{number}_{attempt}")

    def load(self, number: int, attempt: int, batches: Iterator[pa.RecordBatch]) -> int:
        """Returns how many rows part ``number`` has; raises DatasourceError, which names the column where it can."""
        columns, rows = ", ".join(map(quoted, self.columns)), 0
        insert = f"INSERT INTO loaded VALUES ({', '.join('?' * len(self.columns))})"
        file = self.file(number, attempt)
        with said_of(self.access, file), closing(sqlite3.connect(file, isolation_level=None)) as made:
            made.execute("PRAGMA journal_mode = OFF")
            made.execute("PRAGMA synchronous = OFF")
            made.execute("BEGIN")
            made.execute(f"CREATE TABLE loaded ({columns})")
            for batch in paced(batches, self.rows_per_second):
                values = [self._values(name, one) for name, one in zip(self.columns, batch.columns, strict=True)]
                made.executemany(insert, zip(*values, strict=True))
                rows += batch.num_rows
            made.execute("COMMIT")
        return rows

    def _values(self, name: str, column: pa.Array) -> list[Any]:
        import pyarrow as pa  # noqa: PLC0415 - only workers need it

        kind = column.type
        if pa.types.is_decimal(kind):
            return [None if one is None else f"{one:f}" for one in column.to_pylist()]
        if pa.types.is_timestamp(kind):
            texts = column.cast(pa.timestamp("us")).cast(pa.string()).to_pylist()
            return [one.removesuffix(".000000") if one else one for one in texts]
        if pa.types.is_date(kind):
            return list(column.cast(pa.string()).to_pylist())
        values = list(column.to_pylist())
        if pa.types.is_floating(kind) and any(one is not None and math.isnan(one) for one in values):
            raise DatasourceError(f"datasource {self.access.name!r}: column {name} has NaN, which SQLite cannot hold")
        return values


def staging_file(access: Access, what: str) -> Path:
    """A file beside the database."""
    database = database_file(access)
    return database.with_name(f"{database.name}.falcon_staging_{what}")


@contextmanager
def open_writing(access: Access, request: WriteRequest) -> Iterator[SqliteWriting]:
    """Opens a delivery; raises DatasourceError where the target does not fit, with all that has to be changed."""
    file = database_file(access)
    if not file.is_file():
        raise DatasourceError(f"datasource {access.name!r}: there is no file {file}")
    with said_of(access, file), closing(sqlite3.connect(file, timeout=LOCK_SECONDS, isolation_level=None)) as made:
        table, columns = _target(made, access, request)
        made.execute(_CREATED)
        drop_staging(access)
        with _held(access) as key:
            known = {one.name: one for one in columns}
            opened = SqliteWriting(access=access, request=request, connection=made, shown=table, columns=known, key=key)
            opened.look()
            try:
                yield opened
            finally:
                drop_staging(access, key)


@contextmanager
def _held(access: Access) -> Iterator[str]:
    """The key of a delivery, whose file is locked as long as its driver lives."""
    key = uuid4().hex[:15]
    descriptor = lock_file(staging_file(access, key), new=True)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield key
    finally:
        os.close(descriptor)


def drop_staging(access: Access, own: str = "") -> None:
    """Removes the files of deliveries whose driver is dead, and of that with the key ``own``."""
    database = database_file(access)
    for file in sorted(database.parent.glob(f"{_pattern(database.name)}.falcon_staging_*")):
        found = _STAGING.search(file.name)
        if found and (found[1] == own or not _is_held(staging_file(access, found[1]))):
            with suppress(FileNotFoundError):
                file.unlink()


def _pattern(name: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", name)


def _is_held(file: Path) -> bool:
    try:
        descriptor = os.open(file, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _target(made: sqlite3.Connection, access: Access, request: WriteRequest) -> tuple[str, list[SqliteColumn]]:
    name = request.declared.target.table
    kinds = table_names(made)
    if name not in kinds:
        error = no_such_table(access.name, name, sorted(kinds))
        raise DatasourceError(f"{error}. This creates it: {_DIALECT.created(quoted(name), request)}")
    if kinds[name] != "table":
        raise DatasourceError(f"datasource {access.name!r}: {name} is a view: export to the table that it shows")
    found = made.execute(_COLUMNS, (name,)).fetchall()
    key = [column for column, _, _, _, number, _ in found if number]
    columns = []
    for column, said, is_full, has_default, _, hidden in found:
        is_row_id = key == [column] and said.lower() == "integer"
        own = _affinity(said)
        columns.append(
            SqliteColumn(column, said.lower(), own, bool(is_full), bool(has_default or is_row_id), hidden > 1)
        )

    def unique() -> list[list[str]]:
        indexes = [one for (one,) in made.execute(_INDEXES, (name,)).fetchall()]
        own = "SELECT name FROM pragma_index_info(?)"
        return [key, *([column for (column,) in made.execute(own, (index,))] for index in indexes)]

    _DIALECT.require_fit(request, columns, unique, quoted(name), f"{name} of {access.name}")
    return name, columns


def _affinity(declared: str) -> str:
    """What SQLite makes of values: ``numeric`` makes numbers of texts that look like such."""
    if not declared or declared.lower() == "any":
        return ""
    return spark_type(declared, "numeric")


@dataclass(kw_only=True)
class SqliteWriting(StagedDelivery):
    """A delivery that is open; ``columns`` are all of the target, by name."""

    finds_several: ClassVar[bool] = False
    connection: sqlite3.Connection
    columns: dict[str, SqliteColumn]

    @cached_property
    def log(self) -> DeliveryLog:
        read: Callable[[Any], datetime] = lambda text: datetime.fromisoformat(text).replace(tzinfo=UTC)  # noqa: E731
        return DeliveryLog(self.ask, DELIVERIES, self.shown, self.request, quoted, _literal, read)

    @cached_property
    def part(self) -> SqliteStagingPart:
        names = [name for name, _ in self.request.columns]
        return SqliteStagingPart(self.access, self.key, names, self.request.rows_per_second)

    def expression(self, name: str, spark_type: str) -> str:
        own = "`" + name.replace("`", "``") + "`"
        if _NESTED.match(spark_type):
            return f"to_json({own})"
        return f"CAST({own} AS string)" if _STRING.fullmatch(spark_type) else own

    def ask(self, statement: str) -> Sequence[tuple[Any, ...]]:
        return self.connection.execute(statement).fetchall()

    def tables(self, loaded: Sequence[LoadedPart]) -> list[str]:
        return ["part.loaded" for one in loaded if one.rows]

    def commit(self, loaded: Sequence[LoadedPart], last: Callable[[], None]) -> int:
        for one in loaded:
            if one.rows:
                if not (file := self.part.file(one.number, one.attempt)).is_file():
                    where = "the workers of Spark need the database at the same path as the driver"
                    raise DatasourceError(f"datasource {self.access.name!r}: there is no file {file}: {where}")
                self.connection.execute("ATTACH ? AS part", (str(file),))
        return super().commit(loaded, last)

    @contextmanager
    def transaction(self, tables: Sequence[str]) -> Iterator[None]:
        with current_cancellation().ended_by(self.connection.interrupt):
            try:
                self.connection.execute("BEGIN IMMEDIATE")
                yield
                self.connection.execute("COMMIT")
            except sqlite3.Error as error:
                raise DatasourceError(f"datasource {self.access.name!r}: {self._explained(error, tables)}") from error
            finally:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")

    @cached_property
    def move(self) -> RowMove:
        declared = self.request.declared
        filled = self.columns[declared.partition] if declared.partition else None
        moment, until = (
            _literal(_DIALECT.moment(filled, one, self.request.timezone))
            for one in (self.request.start, self.request.end)
        )
        columns = [(name, quoted(name)) for name, _ in self.request.columns]
        return RowMove(quoted, declared.load, quoted(self.shown), columns, declared.partition, moment, until)

    def _explained(self, error: sqlite3.Error, tables: Sequence[str]) -> str:
        if isinstance(error, sqlite3.IntegrityError) and "UNIQUE" in str(error) and not self.move.key:
            return f"{error}: load: {{upsert: {{key: [...]}}}} replaces rows with the same key"
        return f"{database_file(self.access)}: {error}"


def _literal(value: object) -> str:
    if isinstance(value, datetime):
        value = (value.astimezone(UTC) if value.tzinfo else value).strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, date):
        value = value.isoformat()
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"
