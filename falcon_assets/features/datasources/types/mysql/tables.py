"""Tables and views of MySQL, and their columns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import Dataset, DatasetColumn, WriteRequest
from falcon_assets.features.datasources.types.mysql.column_types import spark_type
from falcon_assets.features.datasources.types.mysql.connecting import connected, quoted
from falcon_assets.features.datasources.types.mysql.fits import DIALECT, MysqlColumn
from falcon_assets.features.datasources.unknown_tables import no_such_table

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

_NAMES = "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY table_name"
_COLUMNS = """
    SELECT table_name, column_name, column_type, is_nullable FROM information_schema.columns
    WHERE table_schema = DATABASE() AND (%(name)s IS NULL OR table_name = %(name)s)
    ORDER BY table_name, ordinal_position
"""


_KINDS = """
    SELECT t.table_name, t.table_type, e.transactions FROM information_schema.tables t
    LEFT JOIN information_schema.engines e ON e.engine = t.engine
    WHERE t.table_schema = DATABASE() AND t.table_name = %s
"""
_WRITTEN = """
    SELECT column_name, column_type, character_set_name, collation_name, is_nullable = 'NO',
           column_default IS NOT NULL OR extra LIKE '%%auto_increment%%', extra LIKE '%%GENERATED%%'
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = %s ORDER BY ordinal_position
"""
_UNIQUE = """
    SELECT index_name, column_name, sub_part FROM information_schema.statistics
    WHERE table_schema = DATABASE() AND table_name = %s AND non_unique = 0
"""
_KEY = """
    SELECT max(column_name) FROM information_schema.key_column_usage
    WHERE table_schema = DATABASE() AND table_name = %s AND constraint_name = 'PRIMARY' HAVING count(*) = 1
"""


def datasets(access: Access, name: str | None) -> Iterator[Dataset]:
    """Yields the tables and views of the database that the user may see, by name; or that one."""
    with connected(access) as cursor:
        cursor.execute(_COLUMNS, {"name": name})
        rows = cursor.fetchall()
        if name is not None and not rows:
            raise _no_such(cursor, name, access.name)
    for said, columns in groupby(rows, key=lambda row: str(row[0])):
        known = [DatasetColumn(one, kind, spark_type(kind), empty == "YES") for _, one, kind, empty in columns]
        yield Dataset(said, tuple(known))


def column_types(cursor: Cursor, name: str, datasource: str) -> dict[str, str]:
    """Returns the types of the columns of a table, in order; DatasourceError where there is none of that name."""
    cursor.execute(_COLUMNS, {"name": name})
    if found := {column: str(kind) for _, column, kind, _ in cursor.fetchall()}:
        return found
    raise _no_such(cursor, name, datasource)


def primary_key(cursor: Cursor, name: str) -> str | None:
    """Returns the only column of the primary key; None: it has several, or there is no key."""
    cursor.execute(_KEY, (name,))
    found = cursor.fetchone()
    return str(found[0]) if found else None


def table_to_write(cursor: Cursor, access: Access, request: WriteRequest) -> tuple[str, list[MysqlColumn]]:
    """Returns the name of the target and its columns; DatasourceError where there is none, or no transactions."""
    name = request.declared.target.table
    cursor.execute(_KINDS, (name,))
    found = cursor.fetchone()
    if found is None:
        created = DIALECT.created(quoted(name), request)
        raise DatasourceError(f"{_no_such(cursor, name, access.name)}. This creates it: {created}")
    table, kind, transactions = found
    if "TABLE" not in kind:
        raise DatasourceError(f"datasource {access.name!r}: {table} is a view: export to the table that it shows")
    if transactions != "YES":
        change = f"ALTER TABLE {quoted(table)} ENGINE = InnoDB"
        raise DatasourceError(f"datasource {access.name!r}: {table} has no transactions, which exports need: {change}")
    cursor.execute(_WRITTEN, (table,))
    columns = []
    for column, said, charset, collation, *facts in cursor.fetchall():
        texts = f"CHARACTER SET {charset} COLLATE {collation}" if charset and collation else ""
        columns.append(MysqlColumn(column, said, texts, *map(bool, facts)))
    return str(table), columns


def unique_keys(cursor: Cursor, table: str) -> list[list[str]]:
    """Returns the columns of each unique index, but of those of beginnings of texts, or of expressions."""
    cursor.execute(_UNIQUE, (table,))
    found: dict[str, list[str | None]] = {}
    for index, column, cut in cursor.fetchall():
        found.setdefault(index, []).append(None if cut else column)
    return [[one for one in columns if one] for columns in found.values() if None not in columns]


def _no_such(cursor: Cursor, name: str, datasource: str) -> DatasourceError:
    cursor.execute(_NAMES)
    return no_such_table(datasource, name, [said for (said,) in cursor.fetchall()])
