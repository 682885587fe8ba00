"""Reads tables and queries of MySQL: by ranges of a column, each in a statement of its own.

MySQL has no snapshot that several connections see. Each part sees the moment when it begins; with one part, all of the
source is seen at one moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.chosen_columns import chosen, require_column
from falcon_assets.features.datasources.datasource_type import ReadPart, ReadRequest, SourceColumn
from falcon_assets.features.datasources.queries import bound
from falcon_assets.features.datasources.types.mysql.column_types import source_column, type_of
from falcon_assets.features.datasources.types.mysql.connecting import connected, quoted
from falcon_assets.features.datasources.types.mysql.selected_rows import SelectedRows, selected
from falcon_assets.features.datasources.types.mysql.tables import column_types, primary_key

_NUMBERS = ("tinyint", "smallint", "mediumint", "int", "bigint", "decimal")
_TIMES = ("date", "datetime", "timestamp")


@dataclass(frozen=True)
class MysqlReading:
    """As :class:`.SourceReading` says, except that parts may see different moments."""

    columns: Sequence[SourceColumn]
    parts: Sequence[ReadPart]
    low: str | None
    high: str | None
    behind: str | None = None


class _MysqlSource(NamedTuple):
    """What is read.

    Attributes:
        place: What stands after FROM.
        types: The types of its columns, by name.
        key: The only column of its primary key; None: it has none.
    """

    place: str
    types: dict[str, str]
    key: str | None


class _MysqlChanges(NamedTuple):
    conditions: list[str]
    low: str | None
    high: str | None


@contextmanager
def open_reading(access: Access, request: ReadRequest) -> Iterator[MysqlReading]:
    """Raises DatasourceError where it cannot be read like that."""
    with connected(access, seconds=None) as cursor:
        reading = _MysqlOpening(access, request, cursor).reading()
    yield reading


@dataclass(frozen=True)
class _MysqlOpening:
    access: Access
    request: ReadRequest
    cursor: Any

    @property
    def _where(self) -> str:
        return f"{self.request.declared.source.what} of {self.access.name}"

    def reading(self) -> MysqlReading:
        source = self._source()
        names = tuple(source.types)
        taken = chosen(names, self.request.declared.fields, self._where)
        columns = [source_column(name, source.types[name]) for name in taken]
        changes = self._changes(source)
        conditions = self._parts(source)
        rate = self.access.throttle.rows_per_second
        share = rate / len(conditions) if rate else None
        chosen_text = ", ".join(map(selected, columns))
        parts = [
            SelectedRows(
                self.access,
                self._where,
                f"SELECT {chosen_text} FROM {source.place}{_all_of([*part, *changes.conditions])}",
                columns,
                share,
            )
            for part in conditions
        ]
        return MysqlReading(columns, parts, changes.low, changes.high)

    def _source(self) -> _MysqlSource:
        said = self.request.declared.source
        if said.query is not None:
            times = {"start": _instant(self.request.start), "end": _instant(self.request.end)}
            place = f"({bound(said.query, 'mysql', times)}\n) AS source"
            self.cursor.execute(f"SELECT * FROM {place} LIMIT 0")
            fields = self.cursor._result.fields  # the only place that has signs and character sets
            return _MysqlSource(place, {one.name: type_of(one) for one in fields}, None)
        assert said.table is not None
        types = column_types(self.cursor, said.table, self.access.name)
        return _MysqlSource(quoted(said.table), types, primary_key(self.cursor, said.table))

    def _changes(self, source: _MysqlSource) -> _MysqlChanges:
        incremental = self.request.declared.incremental
        if incremental is None:
            return _MysqlChanges([], None, None)
        require_column(incremental.column, tuple(source.types), self._where)
        if incremental.overlap is None:
            raise DatasourceError(
                f"{self._where}: MySQL does not show which transactions wrote a row: what is committed late is found "
                "by reading again what is near the newest value, with overlap and merge: {upsert: {key: [..]}}"
            )
        kind = _bare(source.types[incremental.column])
        if kind not in _TIMES:
            raise DatasourceError(
                f"{self._where}: column {incremental.column!r} is {kind}: overlap is a length of time, so it has to be "
                "a time"
            )
        column = quoted(incremental.column)
        # A value in the future must not keep what is written until then from being read.
        self.cursor.execute(f"SELECT CAST(least(max({column}), utc_timestamp(6)) AS CHAR) FROM {source.place}")
        ((newest,),) = self.cursor.fetchall()
        conditions, low, upto = [], self.request.low, self.request.upto
        if low is not None:
            length = incremental.overlap
            unit = length.unit.name.removesuffix("S")
            conditions.append(f"{column} >= {self._literal(low)} - INTERVAL {length.count} {unit}")
        if upto is not None:
            conditions.append(f"{column} <= {self._literal(upto)}")
        return _MysqlChanges(conditions, low, upto or newest or low)

    def _parts(self, source: _MysqlSource) -> list[list[str]]:
        """Conditions of the parts: ranges of equal length; nulls are in the first."""
        name = self.request.declared.partition_by
        if name is not None:
            require_column(name, tuple(source.types), self._where)
            if _bare(source.types[name]) not in _NUMBERS:
                kind = source.types[name]
                raise DatasourceError(f"{self._where}: partition_by needs numbers, and {name!r} is {kind}")
        elif source.key is not None and _bare(source.types[source.key]) in _NUMBERS:
            name = source.key
        most = min(self.request.parts, self.access.throttle.connections)
        if name is None or most < 2:
            return [[]]
        column = quoted(name)
        self.cursor.execute(f"SELECT floor(min({column})), floor(max({column})) FROM {source.place}")
        ((least, greatest),) = self.cursor.fetchall()
        if least is None or least == greatest:
            return [[]]
        first, span = int(least), int(greatest) - int(least)
        bounds = sorted({first + -(-span * number // most) for number in range(1, most)} - {first})
        inner = [[f"{column} >= {since} AND {column} < {end}"] for since, end in pairwise(bounds)]
        return [[f"({column} < {bounds[0]} OR {column} IS NULL)"], *inner, [f"{column} >= {bounds[-1]}"]]

    def _literal(self, value: str) -> str:
        return str(self.cursor.mogrify("%s", (value,)))


def _bare(kind: str) -> str:
    return kind.partition("(")[0].partition(" ")[0]


def _all_of(conditions: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _instant(at: datetime) -> str:
    return f"TIMESTAMP '{at:%Y-%m-%d %H:%M:%S}'"
