"""A part of what MySQL has, as a worker of Spark reads it: row by row, as the server finds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import SourceColumn
from falcon_assets.features.datasources.row_batches import row_batches
from falcon_assets.features.datasources.types.mysql.column_types import AS_TEXT
from falcon_assets.features.datasources.types.mysql.connecting import connect, quoted, said_of

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class SelectedRows:
    """Rows of a statement.

    Attributes:
        where: The table and the datasource, for people.
        rows_per_second: The share of this part; None: as many as it can.
    """

    access: Access
    where: str
    statement: str
    columns: Sequence[SourceColumn]
    rows_per_second: float | None

    def batches(self) -> Iterator[pa.RecordBatch]:
        from pymysql.cursors import SSCursor  # noqa: PLC0415 - of an extra

        with closing(connect(self.access)) as connection, said_of(self.access):
            cursor = connection.cursor(SSCursor)
            cursor.execute(self.statement)
            yield from row_batches(cursor, self.columns, self.where, self.rows_per_second)


def selected(column: SourceColumn) -> str:
    """What of a column is selected, so that the text which the server sends says all of the value."""
    name = quoted(column.name)
    kind = column.source_type.partition("(")[0].partition(" ")[0]
    if column.arrives_as == "float":
        return f"{name} + 0e0"  # it writes six digits of a float, and all of a double
    if kind in AS_TEXT or (kind == "decimal" and column.arrives_as == "string"):
        return f"CAST({name} AS CHAR)"
    return name
