"""Tables and views of MySQL, and their columns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import Dataset, DatasetColumn
from falcon_assets.features.datasources.types.mysql.column_types import spark_type
from falcon_assets.features.datasources.types.mysql.connecting import connected
from falcon_assets.features.datasources.unknown_tables import no_such_table

_NAMES = "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY table_name"
_COLUMNS = """
    SELECT table_name, column_name, column_type, is_nullable FROM information_schema.columns
    WHERE table_schema = DATABASE() AND (%(name)s IS NULL OR table_name = %(name)s)
    ORDER BY table_name, ordinal_position
"""


def datasets(access: Access, name: str | None) -> Iterator[Dataset]:
    """Yields the tables and views of the database that the user may see, by name; or that one."""
    with connected(access) as cursor:
        cursor.execute(_COLUMNS, {"name": name})
        rows = cursor.fetchall()
        if name is not None and not rows:
            cursor.execute(_NAMES)
            raise no_such_table(access.name, name, [said for (said,) in cursor.fetchall()])
    for said, columns in groupby(rows, key=lambda row: str(row[0])):
        known = [DatasetColumn(one, kind, spark_type(kind), empty == "YES") for _, one, kind, empty in columns]
        yield Dataset(said, tuple(known))
