"""Tables and views of PostgreSQL, and their columns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from psycopg2.extensions import cursor as Cursor  # noqa: N812 - it is a class

from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import Dataset, DatasetColumn
from falcon_assets.features.datasources.types.postgresql.column_types import spark_type
from falcon_assets.features.datasources.types.postgresql.connecting import connected
from falcon_assets.features.datasources.unknown_tables import no_such_table

_TABLES = """
    WITH tables AS (
        SELECT c.oid, n.nspname, c.relname, c.relkind, c.relispartition,
               CASE WHEN pg_table_is_visible(c.oid) THEN c.relname ELSE n.nspname || '.' || c.relname END AS said
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
          AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_toast'
    )
"""
_ONE = """
    SELECT oid, nspname, relname, relkind FROM tables
    WHERE said = %(name)s OR nspname || '.' || relname = %(name)s
"""
_NAMES = "SELECT said FROM tables WHERE NOT relispartition"
_COLUMNS = """
    SELECT said, attname, format_type(coalesce(nullif(t.typbasetype, 0), a.atttypid),
                                      CASE WHEN t.typbasetype = 0 THEN a.atttypmod ELSE t.typtypmod END),
           NOT a.attnotnull
    FROM tables
    LEFT JOIN pg_attribute a ON a.attrelid = tables.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_type t ON t.oid = a.atttypid
    WHERE CASE WHEN %(oid)s::oid IS NULL THEN NOT relispartition AND has_table_privilege(tables.oid, 'SELECT')
               ELSE tables.oid = %(oid)s END
    ORDER BY said, a.attnum
"""


class PostgresqlTable(NamedTuple):
    """A table or view; names are those of the catalog, not quoted.

    Attributes:
        kind: ``relkind`` of ``pg_class``.
    """

    oid: int
    schema: str
    name: str
    kind: str


def table_named(cursor: Cursor, name: str, datasource: str) -> PostgresqlTable:
    """Returns the table that ``orders`` (on the search path) or ``sales.orders`` names, as it is spelled there.

    Raises:
        DatasourceError: there is none; with the nearest names.
    """
    cursor.execute(_TABLES + _ONE, {"name": name})
    if found := cursor.fetchone():
        return PostgresqlTable(*found)
    cursor.execute(_TABLES + _NAMES)
    known = [said for (said,) in cursor.fetchall()]
    raise no_such_table(datasource, name, known)


def datasets(access: Access, name: str | None) -> Iterator[Dataset]:
    """Yields the tables and views that the user may read, by name; or that one."""
    with connected(access) as connection, connection.cursor() as cursor:
        only = None if name is None else table_named(cursor, name, access.name).oid
        cursor.execute(_TABLES + _COLUMNS, {"oid": only})
        rows = cursor.fetchall()
    for said, columns in groupby(rows, key=lambda row: row[0]):
        known = [row[1:] for row in columns if row[1] is not None]
        yield Dataset(said, tuple(DatasetColumn(one, kind, spark_type(kind), empty) for one, kind, empty in known))
