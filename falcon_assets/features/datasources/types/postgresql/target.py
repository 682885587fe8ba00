"""The table that a delivery is written to, and what a feed needs of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

from psycopg2.extensions import cursor as Cursor  # noqa: N812 - it is a class

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import WriteRequest
from falcon_assets.features.datasources.types.postgresql.fits import DATE, TIMESTAMP, Fit, fit_of
from falcon_assets.features.datasources.types.postgresql.misfits import created, misfits
from falcon_assets.features.datasources.types.postgresql.tables import PostgresqlTable, table_named
from falcon_assets.features.datasources.types.postgresql.target_columns import TargetColumn, columns_of, quoted
from falcon_assets.model.instant import format_instant
from falcon_assets.model.transfer import UpsertLoad

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

    def moment(self, instance: datetime, zone: str) -> datetime | date:
        """The time of an instance as its column has it: without a time zone in UTC, as a date in that zone."""
        if self.filled is not None and self.filled.base == DATE:
            return instance.astimezone(ZoneInfo(zone)).date()
        if self.filled is not None and self.filled.base == TIMESTAMP:
            return instance.astimezone(UTC).replace(tzinfo=None)
        return instance


def target_of(cursor: Cursor, access: Access, request: WriteRequest) -> Target:
    """Returns the table; raises DatasourceError where there is none, or with all that does not fit."""
    table = _table(cursor, access, request)
    columns = columns_of(cursor, table.oid)
    known, filled = {one.name: one for one in columns}, request.declared.partition
    shown, own = f"{table.schema}.{table.name}", f"{quoted(table.schema)}.{quoted(table.name)}"
    problems = [*misfits(request.columns, columns, filled, own)]
    problems += _problems_of_load(cursor, request, table, known)
    if problems:
        raise DatasourceError(f"{request.feed} cannot be delivered to {shown} of {access.name}: {'; '.join(problems)}")
    fits = {name: fit for name, one in request.columns if (fit := fit_of(one, known[name]))}
    return Target(table.oid, table.schema, table.name, fits, known[filled] if filled else None)


def _table(cursor: Cursor, access: Access, request: WriteRequest) -> PostgresqlTable:
    name = request.declared.target.table
    try:
        return table_named(cursor, name, access.name)
    except DatasourceError as error:
        load = request.declared.load
        key = load.upsert.key if isinstance(load, UpsertLoad) else ()
        own = ".".join(quoted(one) for one in name.split("."))
        statement = created(own, request.columns, request.declared.partition, key)
        raise DatasourceError(f"{error}. This creates it: {statement}") from None


def _problems_of_load(
    cursor: Cursor, request: WriteRequest, table: PostgresqlTable, known: Mapping[str, TargetColumn]
) -> Iterator[str]:
    declared = request.declared
    if isinstance(declared.load, UpsertLoad):
        yield from _problems_of_key(cursor, request, table, declared.load.upsert.key)
    elif declared.load in ("insert", "replace_partition") and declared.partition is None:
        yield f"load: {declared.load} needs partition: the column of the table that has the time of the instance"
    filled = known.get(declared.partition or "")
    if filled and filled.base == DATE:
        zone = ZoneInfo(request.timezone)
        if request.start.astimezone(zone).time() != time():
            instance = format_instant(request.start)
            yield f"{filled.name} is a date, and {instance} is no midnight in {request.timezone}: make it timestamptz"


def _problems_of_key(
    cursor: Cursor, request: WriteRequest, table: PostgresqlTable, key: Sequence[str]
) -> Iterator[str]:
    given = {*dict(request.columns), request.declared.partition}
    if missing := [one for one in key if one not in given]:
        yield f"{', '.join(missing)} of the key is not exported"
        return
    cursor.execute(_UNIQUE, (table.oid,))
    if set(key) not in [set(columns) for (columns,) in cursor.fetchall()]:
        names = ", ".join(map(quoted, key))
        create = f"CREATE UNIQUE INDEX ON {quoted(table.schema)}.{quoted(table.name)} ({names})"
        yield f"load: upsert needs a unique index on {', '.join(key)}, as the database finds rows by it: {create}"
