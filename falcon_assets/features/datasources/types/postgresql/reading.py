"""Reads tables and queries of PostgreSQL: parts that see one snapshot, and changes by their transactions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from psycopg2 import sql
from psycopg2.extensions import Column
from psycopg2.extensions import cursor as Cursor  # noqa: N812 - it is a class

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.chosen_columns import chosen, require_column
from falcon_assets.features.datasources.datasource_type import ReadPart, ReadRequest, SourceColumn
from falcon_assets.features.datasources.queries import bound
from falcon_assets.features.datasources.types.postgresql.changes import Changes, by_column, by_transactions
from falcon_assets.features.datasources.types.postgresql.column_types import is_array, source_column
from falcon_assets.features.datasources.types.postgresql.connecting import connect, said_of
from falcon_assets.features.datasources.types.postgresql.copied_rows import CopiedRows, settle
from falcon_assets.features.datasources.types.postgresql.ranges import page_ranges
from falcon_assets.features.datasources.types.postgresql.tables import table_named
from falcon_assets.model.instant import format_instant

_WITH_TID_RANGES = 140_000
_OF_TIME = ("date", "timestamp without time zone", "timestamp with time zone")
_WHOLE, _BROKEN, _TIME = (
    "ceil(least::numeric + (most::numeric - least) * k / {parts})::text",
    "(least::numeric + (most::numeric - least::numeric) * k / {parts})::text",
    "(least::timestamp + (most::timestamp - least::timestamp) * (k::float8 / {parts}))::text",
)
_RANGES = {
    **dict.fromkeys(("smallint", "integer", "bigint"), _WHOLE),
    **dict.fromkeys(("numeric", "real", "double precision"), _BROKEN),
    **dict.fromkeys(_OF_TIME, _TIME),
}
"""Type of a column -> SQL for the end of the k-th range between the ``least`` and the ``most`` value."""
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
    low: str | None
    high: str | None
    behind: str | None


class _Source(NamedTuple):
    """What is read.

    Attributes:
        dataset: Its name, for people.
        place: What stands after FROM.
        described: Its columns, as PostgreSQL describes a result.
        pages: Of each partition of a table that is on pages; None: it is not.
        shows_transactions: Whether its rows know the transactions that wrote them.
    """

    dataset: str
    place: sql.Composable
    described: Sequence[Column]
    pages: Sequence[int] | None
    shows_transactions: bool

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.described)


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
        changes = self._changes(source)
        if changes.is_empty:
            return DatabaseReading(columns, [], changes.low, changes.high, changes.behind)
        conditions = self._parts(source)
        snapshot = self._snapshot() if len(conditions) > 1 else None
        selected = sql.SQL(", ").join(map(_selected, columns))
        rate = self.access.throttle.rows_per_second
        parts = [
            CopiedRows(
                self.access,
                source.dataset,
                self._text(
                    sql.SQL("SELECT {} FROM {}{}").format(
                        selected, source.place, _where([*of_part, *changes.conditions])
                    )
                ),
                columns,
                snapshot,
                rate / len(conditions) if rate else None,
            )
            for of_part in conditions
        ]
        return DatabaseReading(columns, parts, changes.low, changes.high, changes.behind)

    def _changes(self, source: _Source) -> Changes:
        incremental = self.request.declared.incremental
        if incremental is None:
            return Changes([])
        require_column(incremental.column, source.names, self._where(source))
        where = self._where(source)
        if source.shows_transactions:
            return by_transactions(self.cursor, self.request, where)
        return by_column(self.cursor, self.request, source.place, where)

    def _source(self) -> _Source:
        said = self.request.declared.source
        if said.query is not None:
            times = {"start": _instant(self.request.start), "end": _instant(self.request.end)}
            query = bound(said.query, "postgres", times)
            return self._described(said.what, sql.SQL("({}\n) AS source").format(sql.SQL(query)), None, False)
        assert said.table is not None
        table = table_named(self.cursor, said.table, self.access.name)
        self.cursor.execute(_PAGES, {"oid": table.oid})
        leaves = self.cursor.fetchall()
        is_on_pages = all(kind in "rm" and method == "heap" for kind, method, _ in leaves)
        pages = [size or 0 for _, _, size in leaves] if is_on_pages else None
        # Materialized views are written anew by one transaction.
        shows = is_on_pages and all(kind == "r" for kind, _, _ in leaves)
        return self._described(said.table, sql.Identifier(table.schema, table.name), pages, shows)

    def _described(self, dataset: str, place: sql.Composable, pages: Sequence[int] | None, shows: bool) -> _Source:
        self.cursor.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(place))
        return _Source(dataset, place, self.cursor.description or (), pages, shows)

    def _columns(self, source: _Source) -> list[SourceColumn]:
        """Those that are taken; raises DatasourceError where one is named that is not there."""
        described, names = source.described, source.names
        taken = chosen(names, self.request.declared.fields, self._where(source))
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
        return [known[name] for name in taken]

    def _where(self, source: _Source) -> str:
        return f"{source.dataset} of {self.access.name}"

    def _parts(self, source: _Source) -> list[list[sql.Composable]]:
        """Conditions of the parts."""
        most, connections = self.request.parts, self.access.throttle.connections
        readers = min(most, connections - 1)  # this transaction stays open beside them
        column = self.request.declared.partition_by
        if column is not None:
            require_column(column, source.names, self._where(source))
        if readers < 2:
            return [[]]
        if column is not None:
            return self._ranges_of(column, source, readers)
        if source.pages is None or self.cursor.connection.server_version < _WITH_TID_RANGES:
            return [[]]
        ranges = page_ranges(source.pages, readers)
        return [_pages_between(*one) for one in ranges] if len(ranges) > 1 else [[]]

    def _ranges_of(self, name: str, source: _Source, parts: int) -> list[list[sql.Composable]]:
        """Ranges of a column, of equal length; nulls are in the first."""
        column = sql.Identifier(name)
        self.cursor.execute(sql.SQL("SELECT pg_typeof(max({}))::text FROM {}").format(column, source.place))
        (kind,) = self.cursor.fetchone() or ("",)
        if kind not in _RANGES:
            where = self._where(source)
            raise DatasourceError(f"{where}: partition_by needs numbers or times, and {name!r} is {kind}")
        self.cursor.execute(
            sql.SQL(
                "SELECT DISTINCT {bound}, k FROM generate_series(1, {last}) AS k, "
                "(SELECT min({column}) AS least, max({column}) AS most FROM {place} {finite}) AS ends "
                "WHERE least < most ORDER BY k"
            ).format(
                bound=sql.SQL(_RANGES[kind]).format(parts=sql.Literal(parts)),
                last=sql.Literal(parts - 1),
                column=column,
                place=source.place,
                finite=sql.SQL("WHERE isfinite({})").format(column) if kind in _OF_TIME else sql.SQL(""),
            )
        )
        bounds = [sql.SQL("{}::{}").format(sql.Literal(one), sql.SQL(kind)) for one, _ in self.cursor.fetchall()]
        if not bounds:
            return [[]]
        first = sql.SQL("({0} < {1} OR {0} IS NULL)").format(column, bounds[0])
        inner: list[list[sql.Composable]] = [
            [sql.SQL("{0} >= {1} AND {0} < {2}").format(column, since, end)] for since, end in pairwise(bounds)
        ]
        return [[first], *inner, [sql.SQL("{} >= {}").format(column, bounds[-1])]]

    def _snapshot(self) -> str:
        self.cursor.execute("SELECT pg_export_snapshot()")
        (found,) = self.cursor.fetchone() or ("",)
        return str(found)

    def _text(self, composed: sql.Composable) -> str:
        return composed.as_string(self.cursor)


def _selected(column: SourceColumn) -> sql.Composable:
    name = sql.Identifier(column.name)
    return sql.SQL("to_json({}::text[])").format(name) if is_array(column.source_type) else name


def _pages_between(first: int, end: int | None) -> list[sql.Composable]:
    since = sql.SQL("ctid >= {}::tid").format(sql.Literal(f"({first},0)"))
    return [since] if end is None else [since, sql.SQL("ctid < {}::tid").format(sql.Literal(f"({end},0)"))]


def _where(conditions: Sequence[sql.Composable]) -> sql.Composable:
    return sql.SQL(" WHERE {}").format(sql.SQL(" AND ").join(conditions)) if conditions else sql.SQL("")


def _typmod(precision: int | None, scale: int | None) -> int:
    """That of a numeric; psycopg2 tells no other."""
    return -1 if precision in (None, 0xFFFF) else ((precision << 16) | ((scale or 0) & 0xFFFF)) + 4


def _instant(at: datetime) -> str:
    return f"'{format_instant(at)}'::timestamptz"
