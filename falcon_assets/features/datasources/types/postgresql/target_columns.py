"""Columns of a table of PostgreSQL that is written to."""

from __future__ import annotations

from typing import NamedTuple

from psycopg2.extensions import cursor as Cursor  # noqa: N812 - it is a class

_COLUMNS = """
    WITH columns AS (
        SELECT a.*, b.oid AS base, b.typcategory, b.typelem, t.typnotnull, t.typdefault,
               CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END AS modifier
        FROM pg_attribute a
        JOIN pg_type t ON t.oid = a.atttypid
        JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
        WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
    )
    SELECT attname, format_type(atttypid, atttypmod), base, modifier,
           CASE WHEN typcategory = 'A' THEN typelem ELSE 0 END,
           attnotnull OR typnotnull, atthasdef OR typdefault IS NOT NULL OR attidentity <> '',
           attgenerated <> '' OR attidentity = 'a', format_type(base, modifier), format_type(base, -1)
    FROM columns ORDER BY attnum
"""


class TargetColumn(NamedTuple):
    """A column of a target.

    Attributes:
        type: As PostgreSQL writes it.
        base: Number of the type; of a domain, of the type below it. ``modifier``: its length or precision, else -1.
        element: Of an array, the number of the type of its elements; else 0.
        is_filled: Whether it has a value where none is given.
        is_generated: Whether none may be given.
        loaded_as: The type without its domain, and ``bare`` that without a modifier.
    """

    name: str
    type: str
    base: int
    modifier: int
    element: int
    is_required: bool
    is_filled: bool
    is_generated: bool
    loaded_as: str
    bare: str


def columns_of(cursor: Cursor, table: int) -> list[TargetColumn]:
    """Returns the columns of the table with that number, in their order."""
    cursor.execute(_COLUMNS, (table,))
    return [TargetColumn(*row) for row in cursor.fetchall()]


def quoted(name: str) -> str:
    """A name in SQL, as it is spelled."""
    return '"' + name.replace('"', '""') + '"'
