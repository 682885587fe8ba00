"""``falcon_deliveries`` in a schema of PostgreSQL, and the locks of deliveries."""

from __future__ import annotations

from psycopg2.extensions import cursor as Cursor  # noqa: N812 - it is a class

from falcon_assets.features.datasources.staged_delivery import DELIVERIES
from falcon_assets.features.datasources.types.postgresql.target_columns import quoted

_LOCKS = 1_178_944_579
"""First number of the locks of deliveries; the second is that of a table, or 0 while the table above is made."""
_CREATED = """
    CREATE TABLE {table} (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        execution text NOT NULL UNIQUE,
        target text NOT NULL,
        feed text NOT NULL,
        cluster text NOT NULL,
        instance timestamptz NOT NULL,
        version text NOT NULL,
        rows bigint NOT NULL,
        at timestamptz NOT NULL DEFAULT clock_timestamp()
    );
    CREATE INDEX ON {table} (target, feed, cluster, instance);
    COMMENT ON TABLE {table} IS 'Deliveries of feeds to tables of this schema, each written with its rows';
"""


def prepare_deliveries(cursor: Cursor, schema: str) -> str:
    """Creates the table where there is none; returns it in SQL."""
    table = f"{quoted(schema)}.{DELIVERIES}"
    if not _is_there(cursor, schema):
        cursor.execute("SELECT pg_advisory_xact_lock(%s, 0)", (_LOCKS,))
        if not _is_there(cursor, schema):
            cursor.execute(_CREATED.format(table=table))
    return table


def _is_there(cursor: Cursor, schema: str) -> bool:
    """Asks the table of tables: ``to_regclass`` may answer with what it knew before it waited for the lock."""
    there = "SELECT EXISTS (SELECT FROM pg_class WHERE relname = %s AND relnamespace = %s::regnamespace)"
    cursor.execute(there, (DELIVERIES, quoted(schema)))
    return cursor.fetchone() == (True,)


def lock_deliveries(cursor: Cursor, table: int) -> None:
    """Lets no other delivery to the table of that number be committed until the end of the transaction."""
    cursor.execute("SELECT pg_advisory_xact_lock(%s, %s::bigint::bit(32)::int)", (_LOCKS, table))
