"""Writes rows: inserts what is new, replaces what is there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Table
from sqlalchemy.dialects.postgresql import insert

T = TypeVar("T")
_CHUNK = 1000


def upsert(
    connection: Connection, table: Table, rows: Sequence[dict[str, Any]], where: ColumnElement[bool] | None = None
) -> None:
    """Inserts the rows, all columns given; those whose key is there are replaced, where that is allowed."""
    keys = [column.name for column in table.primary_key]
    statement = insert(table)
    others = {column.name: statement.excluded[column.name] for column in table.c if column.name not in keys}
    if rows:
        # As many executions of one statement, which SQLAlchemy puts together again: one with all the values in it would
        # be compiled anew each time, which takes longer than everything else here.
        connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=others, where=where), rows)


def parts(items: Collection[T], size: int = _CHUNK) -> Iterable[list[T]]:
    """The items in lists of that size."""
    rest = iter(items)
    while part := list(islice(rest, size)):
        yield part
