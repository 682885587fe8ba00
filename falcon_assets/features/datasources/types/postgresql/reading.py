"""Reads tables and queries of PostgreSQL: parts that see one snapshot, and changes by their transactions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import NamedTuple

from psycopg2 import sql
from psycopg2.extensions import cursor as Cursor  # noqa: N812 - it is a class

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import ReadPart, ReadRequest, SourceColumn
from falcon_assets.features.datasources.queries import bound
from falcon_assets.features.datasources.types.postgresql.column_types import is_array, source_column
from falcon_assets.features.datasources.types.postgresql.connecting import connect, said_of
from falcon_assets.features.datasources.types.postgresql.copied_rows import CopiedRows, settle
from falcon_assets.features.datasources.types.postgresql.ranges import page_ranges
from falcon_assets.features.datasources.types.postgresql.tables import table_named
from falcon_assets.model.instant import format_instant

_WITH_TID_RANGES = 140_000
_TYPES_OF = """
    WITH RECURSIVE given AS (
        SELECT n, coalesce(a.atttypid, type) AS type, coalesce(nullif(a.atttypmod, -1), typmod) AS typmod,
               greatest(coalesce(a.attndims, 1), 1) AS dimensions
        FROM unnest(%(types)s::oid[], %(typmods)s::int[], %(tables)s::oid[], %(numbers)s::int[]) WITH ORDINALITY
                 AS described (type, typmod, relation, number, n)
        LEFT JOIN pg_attribute a ON a.attrelid = relation AND a.attnum = number
    ),
    below AS (
        SELECT n, type, typmod, dimensions, false AS is_element FROM given
        UNION ALL
        SELECT n, CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.typelem END,
               CASE t.typtype WHEN 'd' THEN t.typtypmod ELSE typmod END,
               CASE t.typtype WHEN 'd' THEN greatest(dimensions, t.typndims) ELSE dimensions END,
               is_element OR t.typtype <> 'd'
        FROM below JOIN pg_type t ON t.oid = below.type
        WHERE t.typtype = 'd' OR (t.typinput = 'array_in'::regproc AND NOT is_element)
    )
    SELECT format_type(type, typmod) || CASE WHEN is_element THEN '[]' ELSE '' END, dimensions
    FROM below JOIN pg_type t ON t.oid = below.type
    WHERE t.typtype <> 'd' AND (is_element OR t.typinput <> 'array_in'::regproc)
    ORDER BY n
"""
"""Domains are the types below them; the attributes of tables know more of arrays than the description of a result."""
_PAGES = """
    WITH RECURSIVE family AS (
        SELECT %(oid)s::oid AS oid UNION ALL SELECT inhrelid FROM pg_inherits JOIN family ON inhparent = family.oid
    )
    SELECT c.relkind, coalesce(am.amname, ''), pg_relation_size(c.oid) / current_setting('block_size')::int
    FROM family JOIN pg_class c USING (oid) LEFT JOIN pg_am am ON am.oid = c.relam
    WHERE c.relkind <> 'p'
"""


@dataclass(frozen=True)
class DatabaseReading:
    """As :class:`.SourceReading` says."""

    columns: Sequence[SourceColumn]
    parts: Sequence[ReadPart]
    low: str | None = None
    high: str | None = None


class _Source(NamedTuple):
    """What is read.

    Attributes:
        dataset: Its name, for people.
        place: What stands after FROM.
        pages: Of each partition of a table that is on pages; None: it is not.
    """

    dataset: str
    place: sql.Composable
    pages: Sequence[int] | None


@contextmanager
def open_reading(access: Access, request: ReadRequest) -> Iterator[DatabaseReading]:
    """Opens a transaction whose snapshot all parts see, for as long as they are read.

    Raises:
        DatasourceError: it cannot be read like that.
    """
    with closing(connect(access)) as leader, said_of(access):
        leader.set_session(isolation_level="REPEATABLE READ", readonly=True)
        with leader.cursor() as cursor:
            settle(cursor)
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            reading = _Opening(access, request, cursor).reading()
        if len(reading.parts) == 1:  # it has a snapshot of its own
            leader.close()
        yield reading


@dataclass(frozen=True)
class _Opening:
    access: Access
    request: ReadRequest
    cursor: Cursor

    def reading(self) -> DatabaseReading:
        source = self._source()
        columns = self._columns(source)
        wheres = self._wheres(source)
        snapshot = self._snapshot() if len(wheres) > 1 else None
        selected = sql.SQL(", ").join(map(_selected, columns))
        rate = self.access.throttle.rows_per_second
        parts = [
            CopiedRows(
                self.access,
                source.dataset,
                self._text(sql.SQL("SELECT {} FROM {}{}").format(selected, source.place, where)),
                columns,
                snapshot,
                rate / len(wheres) if rate else None,
            )
            for where in wheres
        ]
        return DatabaseReading(columns, parts)

    def _source(self) -> _Source:
        said = self.request.declared.source
        if said.query is not None:
            times = {"start": _instant(self.request.start), "end": _instant(self.request.end)}
            query = bound(said.query, "postgres", times)
            return _Source(said.what, sql.SQL("({}\n) AS source").format(sql.SQL(query)), None)
        assert said.table is not None
        table = table_named(self.cursor, said.table, self.access.name)
        self.cursor.execute(_PAGES, {"oid": table.oid})
        leaves = self.cursor.fetchall()
        is_on_pages = all(kind in "rm" and method == "heap" for kind, method, _ in leaves)
        pages = [size or 0 for _, _, size in leaves] if is_on_pages else None
        return _Source(said.table, sql.Identifier(table.schema, table.name), pages)

    def _columns(self, source: _Source) -> list[SourceColumn]:
        """Those that are taken; raises DatasourceError where one is named that is not there."""
        self.cursor.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(source.place))
        described = self.cursor.description or ()
        names = tuple(one.name for one in described)
        fields = self.request.declared.fields
        for named in (fields.include or fields.exclude or ()) if fields else ():
            self._require(named, names, source)
        self.cursor.execute(
            _TYPES_OF,
            {
                "types": [one.type_code for one in described],
                "typmods": [_typmod(one.precision, one.scale) for one in described],
                "tables": [one.table_oid for one in described],
                "numbers": [one.table_column for one in described],
            },
        )
        known = {name: source_column(name, *row) for name, row in zip(names, self.cursor.fetchall(), strict=True)}
        taken = [known[name] for name in (fields.of(names) if fields else names)]
        self._require_apart([one.name for one in taken], source)
        return taken

    def _require(self, named: str, names: Sequence[str], source: _Source) -> None:
        if named not in names:
            there = get_close_matches(named, names, 3, 0.5) or names
            where = f"{source.dataset} of {self.access.name}"
            raise DatasourceError(f"{where} has no column {named!r}; there is: {', '.join(there)}")

    def _require_apart(self, names: Sequence[str], source: _Source) -> None:
        where = f"{source.dataset} of {self.access.name}"
        if not names:
            raise DatasourceError(f"{where} has no columns")
        lower = [one.lower() for one in names]
        if same := [one for one in names if lower.count(one.lower()) > 1]:
            rest = "are the same name to Spark: leave one out (fields), or rename it in a query"
            raise DatasourceError(f"{where}: columns {' and '.join(same)} {rest}")

    def _wheres(self, source: _Source) -> list[sql.Composable]:
        """Conditions of the parts."""
        most, connections = self.request.parts, self.access.throttle.connections
        readers = min(most, connections - 1)  # this transaction stays open beside them
        if readers < 2 or source.pages is None or self.cursor.connection.server_version < _WITH_TID_RANGES:
            return [sql.SQL("")]
        ranges = page_ranges(source.pages, readers)
        return [_pages_between(*one) for one in ranges] if len(ranges) > 1 else [sql.SQL("")]

    def _snapshot(self) -> str:
        self.cursor.execute("SELECT pg_export_snapshot()")
        (found,) = self.cursor.fetchone() or ("",)
        return str(found)

    def _text(self, composed: sql.Composable) -> str:
        return composed.as_string(self.cursor)


def _selected(column: SourceColumn) -> sql.Composable:
    name = sql.Identifier(column.name)
    return sql.SQL("to_json({}::text[])").format(name) if is_array(column.source_type) else name


def _pages_between(first: int, end: int | None) -> sql.Composable:
    since = sql.SQL(" WHERE ctid >= {}::tid").format(sql.Literal(f"({first},0)"))
    return since if end is None else sql.SQL("{} AND ctid < {}::tid").format(since, sql.Literal(f"({end},0)"))


def _typmod(precision: int | None, scale: int | None) -> int:
    """That of a numeric; psycopg2 tells no other."""
    return -1 if precision in (None, 0xFFFF) else ((precision << 16) | ((scale or 0) & 0xFFFF)) + 4


def _instant(at: datetime) -> str:
    return f"'{format_instant(at)}'::timestamptz"
