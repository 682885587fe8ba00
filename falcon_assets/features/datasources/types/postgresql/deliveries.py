"""``falcon_deliveries``: what was delivered to the tables of a schema of PostgreSQL, written with the data itself."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from psycopg2.extensions import cursor as Cursor  # noqa: N812 - it is a class

from falcon_assets.features.datasources.datasource_type import WriteRequest
from falcon_assets.features.datasources.types.postgresql.target_columns import quoted

TABLE = "falcon_deliveries"
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


class Deliveries(NamedTuple):
    """Those to one table.

    Attributes:
        schema: Of the table, and of that of the deliveries.
        target: Name of the table, ``oid`` its number.
    """

    schema: str
    target: str
    oid: int

    @property
    def table(self) -> str:
        """In SQL without values."""
        return f"{quoted(self.schema)}.{TABLE}"

    @property
    def _named(self) -> str:
        return self.table.replace("%", "%%")

    def prepare(self, cursor: Cursor) -> None:
        """Creates the table where there is none."""
        if not self._is_there(cursor):
            cursor.execute("SELECT pg_advisory_xact_lock(%s, 0)", (_LOCKS,))
            if not self._is_there(cursor):
                cursor.execute(_CREATED.format(table=self.table))

    def _is_there(self, cursor: Cursor) -> bool:
        """Asks the table of tables: ``to_regclass`` may answer with what it knew before it waited for the lock."""
        there = "SELECT EXISTS (SELECT FROM pg_class WHERE relname = %s AND relnamespace = %s::regnamespace)"
        cursor.execute(there, (TABLE, quoted(self.schema)))
        return cursor.fetchone() == (True,)

    def lock(self, cursor: Cursor) -> None:
        """Lets no other delivery to the table be committed until the end of the transaction."""
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s::bigint::bit(32)::int)", (_LOCKS, self.oid))

    def rows(self, cursor: Cursor, execution: str) -> int | None:
        """How many rows that one had; None: it was not delivered."""
        cursor.execute(f"SELECT rows FROM {self._named} WHERE execution = %s", (execution,))
        found = cursor.fetchone()
        return found[0] if found else None

    def last(self, cursor: Cursor, request: WriteRequest) -> str | None:
        """The execution by which the instance was delivered last; None: by none."""
        cursor.execute(
            f"SELECT execution FROM {self._named} WHERE target = %s AND feed = %s AND cluster = %s AND instance = %s "
            "ORDER BY number DESC LIMIT 1",
            (self.target, request.feed, request.cluster, request.start),
        )
        found = cursor.fetchone()
        return found[0] if found else None

    def newest(self, cursor: Cursor, request: WriteRequest) -> datetime | None:
        """The newest instance of the feed that was delivered; None: there is none."""
        cursor.execute(
            f"SELECT max(instance) FROM {self._named} WHERE target = %s AND feed = %s AND cluster = %s",
            (self.target, request.feed, request.cluster),
        )
        found = cursor.fetchone()
        return found[0] if found else None

    def add(self, cursor: Cursor, request: WriteRequest, rows: int) -> None:
        cursor.execute(
            f"INSERT INTO {self._named} (execution, target, feed, cluster, instance, version, rows) "
            "VALUES (%s, %s, %s, %s, %s, %s, %s)",
            (request.execution, self.target, request.feed, request.cluster, request.start, request.version, rows),
        )
