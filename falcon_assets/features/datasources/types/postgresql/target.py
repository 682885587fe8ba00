"""The table that a delivery is written to, and what a feed needs of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from psycopg2.extensions import cursor as Cursor  # noqa: N812 - it is a class

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import WriteRequest
from falcon_assets.features.datasources.target_fitness import TargetDialect
from falcon_assets.features.datasources.types.postgresql.fits import TIMES, Fit, fit_of, natural_type
from falcon_assets.features.datasources.types.postgresql.tables import table_named
from falcon_assets.features.datasources.types.postgresql.target_columns import TargetColumn, columns_of, quoted

_UNIQUE = """
    SELECT array_agg(a.attname::text)
    FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])
    WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indimmediate
      AND i.indpred IS NULL AND i.indexprs IS NULL
    GROUP BY i.indexrelid
"""


@dataclass(frozen=True)
class Target:
    """A table of PostgreSQL that has room for what is exported.

    Attributes:
        fits: The exported columns, and how each travels.
        filled: The column that the export fills with the time of the instance.
    """

    oid: int
    schema: str
    name: str
    fits: Mapping[str, Fit]
    filled: TargetColumn | None

    @property
    def sql(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


DIALECT = TargetDialect[TargetColumn](
    quoted,
    lambda spark_type, column: fit_of(spark_type, column) is not None,
    lambda spark_type, _: natural_type(spark_type),
    "ALTER COLUMN {name} TYPE {type}",
    "CREATE UNIQUE INDEX ON {table} ({names})",
    "timestamp with time zone",
    lambda column: TIMES[column.base],
)


def target_of(cursor: Cursor, access: Access, request: WriteRequest) -> Target:
    """Returns the table; raises DatasourceError where there is none, or with all that does not fit."""

    def unique() -> list[list[str]]:
        cursor.execute(_UNIQUE, (table.oid,))
        return [names for (names,) in cursor.fetchall()]

    name, filled = request.declared.target.table, request.declared.partition
    try:
        table = table_named(cursor, name, access.name)
    except DatasourceError as error:
        own = ".".join(quoted(one) for one in name.split("."))
        raise DatasourceError(f"{error}. This creates it: {DIALECT.created(own, request)}") from None
    columns = columns_of(cursor, table.oid)
    shown, in_sql = f"{table.schema}.{table.name}", f"{quoted(table.schema)}.{quoted(table.name)}"
    DIALECT.require_fit(request, columns, unique, in_sql, f"{shown} of {access.name}")
    known = {one.name: one for one in columns}
    fits = {name: fit for name, one in request.columns if (fit := fit_of(one, known[name]))}
    return Target(table.oid, table.schema, table.name, fits, known[filled] if filled else None)
