"""Writes rows: inserts what is new, replaces what is there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import ARRAY, ColumnElement, Connection, Table, TableValuedAlias, cast, func, literal, select, tuple_
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.types import TypeEngine

T = TypeVar("T")
_CHUNK = 1000


def upsert(
    connection: Connection, table: Table, rows: Sequence[dict[str, Any]], where: ColumnElement[bool] | None = None
) -> None:
    """Inserts the rows, all columns given; those whose key is there are replaced, where that is allowed."""
    names = [column.name for column in table.c]
    keys = [column.name for column in table.primary_key]
    last = {tuple(row[key] for key in keys): row for row in rows}.values()  # one statement changes a row once
    for part in parts(last):
        given = rows_of(table, {name: [row[name] for row in part] for name in names})
        statement = insert(table).from_select(names, select(*given.c))
        others = {name: statement.excluded[name] for name in names if name not in keys}
        connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=others, where=where))


def rows_of(table: Table, columns: Mapping[str, Sequence[Any]]) -> TableValuedAlias:
    """Rows of values of these columns, one array each: compiled in no time, however many they are."""
    return _unnested({name: (table.c[name].type, values) for name, values in columns.items()})


def among(columns: Sequence[ColumnElement[Any]], keys: Sequence[Sequence[Any]]) -> ColumnElement[bool]:
    """Whether the values of those columns are one of the keys; compiled in no time, however many they are."""
    given = {f"key_{at}": (column.type, [key[at] for key in keys]) for at, column in enumerate(columns)}
    return tuple_(*columns).in_(select(*_unnested(given).c))


def parts(items: Collection[T], size: int = _CHUNK) -> Iterable[list[T]]:
    """The items in lists of that size."""
    rest = iter(items)
    while part := list(islice(rest, size)):
        yield part


def _unnested(columns: Mapping[str, tuple[TypeEngine[Any], Sequence[Any]]]) -> TableValuedAlias:
    types = {name: ARRAY(of, dimensions=1) for name, (of, _) in columns.items()}
    arrays = [cast(literal(list(values), types[name]), types[name]) for name, (_, values) in columns.items()]
    return func.unnest(*arrays).table_valued(*columns).render_derived(name="given")
