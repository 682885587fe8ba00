"""Tables beside a target that the tasks of a delivery load: one for each attempt at a part, gone after the delivery.

Their names carry the key of the delivery, whose lock its driver holds in its session: where the lock is free, the
driver is dead, and what it left is dropped by the next delivery.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.pace import paced
from falcon_assets.features.datasources.types.mysql.connecting import connect, quoted, said_of
from falcon_assets.features.datasources.types.mysql.row_literals import ChangedValueError, MysqlStagedColumn, statements

if TYPE_CHECKING:
    import pyarrow as pa

_PREFIX = "falcon_staging_"
_NAME = re.compile(rf"{_PREFIX}([0-9a-f]{{15}})_\d+_\d+")
_LEFT = "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name LIKE 'falcon%'"
_STRICT = (
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO,NO_BACKSLASH_ESCAPES,"
    "ERROR_FOR_DIVISION_BY_ZERO', sql_notes = 1"
)
_STATEMENT_BYTES = 1 << 20


def strict(cursor: Any) -> None:
    """Has the server refuse values that it would change, and take texts as they are."""
    cursor.execute(_STRICT)


@dataclass(frozen=True)
class MysqlStagingPart:
    """Loads parts of a delivery, in tasks of Spark.

    Attributes:
        key: Of the delivery.
        rows_per_second: The share of a part; None: any number.
    """

    access: Access
    key: str
    columns: Sequence[MysqlStagedColumn]
    rows_per_second: float | None

    def table(self, number: int, attempt: int) -> str:
        """The table of one attempt at a part, in SQL."""
        return quoted(f"{_PREFIX}{self.key}_{number}_{attempt}")

    def load(self, number: int, attempt: int, batches: Iterator[pa.RecordBatch]) -> int:
        """Returns how many rows part ``number`` has; raises DatasourceError, which names the column where it can."""
        first = next(batches, None)
        if first is None:
            return 0
        table, rows = self.table(number, attempt), 0
        with closing(connect(self.access)) as connection, said_of(self.access), connection.cursor() as cursor:
            strict(cursor)
            columns = ", ".join(
                f"{quoted(one.target.name)} {one.target.type} {one.target.charset} NULL DEFAULT NULL"
                for one in self.columns
            )
            cursor.execute(f"CREATE TABLE {table} ({columns}) ENGINE = InnoDB")
            cursor.execute("SELECT @@max_allowed_packet")
            size = min(_STATEMENT_BYTES, cursor.fetchone()[0] // 2)
            start = f"INSERT INTO {table} VALUES ".encode()
            for batch in paced(chain((first,), batches), self.rows_per_second):
                try:
                    for statement, number_of_rows in statements(batch, self.columns, start, size):
                        cursor.execute(statement)
                        self._require_unchanged(cursor)
                        rows += number_of_rows
                except ChangedValueError as error:
                    raise DatasourceError(f"datasource {self.access.name!r}: {error}") from None
            connection.commit()
        return rows

    def _require_unchanged(self, cursor: Any) -> None:
        """A warning says that a value was changed, such as one that was rounded."""
        if cursor.warning_count:
            cursor.execute("SHOW WARNINGS LIMIT 1")
            (_, _, said) = cursor.fetchone()
            raise DatasourceError(f"datasource {self.access.name!r}: {said}")


def new_key(cursor: Any) -> str:
    """Returns the key of a delivery, whose lock the session holds until it ends."""
    key = uuid4().hex[:15]
    cursor.execute("SELECT GET_LOCK(%s, 0)", (_PREFIX + key,))
    return key


def drop_staging(cursor: Any, own: str = "") -> None:
    """Drops the tables of deliveries whose driver is dead, and of that with the key ``own``."""
    cursor.execute(_LEFT)
    for (name,) in cursor.fetchall():
        found = _NAME.fullmatch(name)
        if found is None:
            continue
        if found[1] != own:
            cursor.execute("SELECT IS_FREE_LOCK(%s)", (_PREFIX + found[1],))
            if cursor.fetchone() != (1,):
                continue
        cursor.execute(f"DROP TABLE IF EXISTS {quoted(name)}")
