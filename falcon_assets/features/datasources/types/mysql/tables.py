"""Tables and views of MySQL, and their columns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import Dataset, DatasetColumn
from falcon_assets.features.datasources.types.mysql.column_types import spark_type
from falcon_assets.features.datasources.types.mysql.connecting import connected
from falcon_assets.features.datasources.unknown_tables import no_such_table

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

_NAMES = "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY table_name"
_COLUMNS = """
    SELECT table_name, column_name, column_type, is_nullable FROM information_schema.columns
    WHERE table_schema = DATABASE() AND (%(name)s IS NULL OR table_name = %(name)s)
    ORDER BY table_name, ordinal_position
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


def _no_such(cursor: Cursor, name: str, datasource: str) -> DatasourceError:
    cursor.execute(_NAMES)
    return no_such_table(datasource, name, [said for (said,) in cursor.fetchall()])
