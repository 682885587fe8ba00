"""An export into PostgreSQL against Spark's JDBC writer, in the same session, from the same files into the same server.

The driver of JDBC is Debian's package ``libpostgresql-jdbc-java``; without it nothing is measured.
``FALCON_EGRESS_ROWS`` says how many rows.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import psycopg2
from pyspark.sql import DataFrame, SparkSession

from benchmarks.measure import Line, Steps, alternate, line_of
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import WriteRequest, datasource_types
from falcon_assets.features.transfers.exporting import load_parts
from falcon_assets.model.datasource import DatasourceThrottle
from falcon_assets.model.transfer import Export
from tests.features.transfers.source_server import SourceServer, source_server

DRIVER = Path("/usr/share/java/postgresql.jar")
ROWS = int(os.environ.get("FALCON_EGRESS_ROWS", "3000000"))
ROUNDS = 3
BAR = 1 / 1.5
CORES = 2
_COLUMNS = {
    "id": ("id", "bigint"),
    "customer": ("cast(id % 100003 as int)", "int"),
    "price": ("cast(id % 1000000 / 100 as decimal(12,2))", "numeric(12,2)"),
    "quantity": ("cast(id % 50 as int)", "int"),
    "name": ("concat('product number ', id % 5000)", "text"),
    "note": ("if(id % 7 = 0, null, concat('as ordered, \"', id % 977, '\"'))", "text"),
    "ordered_at": ("timestamp_micros(1700000000000000 + id * 1000003)", "timestamptz"),
    "day": ("date_add(date'2020-01-01', cast(id % 1000 as int))", "date"),
    "rate": ("id / 7D", "double precision"),
    "is_paid": ("id % 3 = 0", "boolean"),
}
_START = datetime(2013, 1, 1, tzinfo=UTC)


def measure() -> list[Line]:
    """Until the rows can be seen, each side into a table of its own that is empty.

    JDBC's writer is measured as it is, with a thousand rows in a message, and with its driver's way of joining them
    into statements. Neither is exactly once. The start of Spark's session is in none of the figures; where ours spends
    its time is in the lines below.
    """
    if not DRIVER.is_file():
        return []
    with tempfile.TemporaryDirectory() as folder, source_server(Path(folder)) as server, _session() as session:
        sides = _Sides(session, server, Path(folder))
        sides.ours()
        sides.jdbc()  # both are warm
        rounds = list(alternate(ROUNDS, sides.ours, sides.jdbc))
        joined = list(alternate(ROUNDS, sides.ours, lambda: sides.jdbc("?reWriteBatchedInserts=true")))
    what = f"export {ROWS:,} rows of {len(_COLUMNS)} columns"
    return [
        line_of(f"{what}, by Spark's JDBC writer", rounds, ["load", "move"], BAR),
        line_of("  by the same with reWriteBatchedInserts", joined, ["load", "move"]),
        *(Line(f"  of ours: {step}", tuple(own[step] for own, _ in rounds)) for step in ("load", "move")),
    ]


@contextmanager
def _session() -> Iterator[SparkSession]:
    builder = SparkSession.builder.master(f"local[{CORES}]").appName("egress")
    made = builder.config("spark.jars", str(DRIVER)).config("spark.ui.enabled", "false").getOrCreate()
    try:
        yield made
    finally:
        made.stop()


class _Sides:
    """The same rows by us and by JDBC; what is there is counted each time."""

    def __init__(self, session: SparkSession, server: SourceServer, folder: Path) -> None:
        self._session, self._port, self._rows = session, server.port, str(folder / "rows")
        self._numbers = count(1)
        made = [f"{value} AS {name}" for name, (value, _) in _COLUMNS.items()]
        session.range(0, ROWS, 1, CORES * 2).selectExpr(*made).write.parquet(self._rows)

    def ours(self) -> Steps:
        """Seconds until all is loaded beside the target, and until it can be seen."""
        table = self._table()
        frame = self._frame()
        access = Access("benchmark", "postgresql", self._endpoint, DatasourceThrottle(), "postgres")
        request = WriteRequest(
            Export(target={"name": "benchmark", "table": table}, load="replace"),
            *("orders", "primary", _START, _START + timedelta(hours=1), "UTC", "version"),
            [(one.name, one.dataType.simpleString()) for one in frame.schema],
            execution=table,
        )
        began = time.perf_counter()
        with datasource_types()["postgresql"].open_writing(access, request) as writing:
            loaded = load_parts(frame, writing, CORES)
            is_loaded = time.perf_counter()
            writing.commit(loaded, lambda: None)
        ended = time.perf_counter()
        self._require_all(table)
        return {"load": is_loaded - began, "move": ended - is_loaded}

    def jdbc(self, options: str = "") -> Steps:
        """The same by Spark."""
        table = self._table()
        url = f"jdbc:{self._endpoint}{options}"
        writer = self._frame().coalesce(CORES).write.mode("append")
        began = time.perf_counter()
        writer.jdbc(url, table, properties={"user": "postgres", "driver": "org.postgresql.Driver"})
        ended = time.perf_counter()
        self._require_all(table)
        return {"load": ended - began, "move": 0.0}

    @property
    def _endpoint(self) -> str:
        return f"postgresql://127.0.0.1:{self._port}/postgres"

    def _frame(self) -> DataFrame:
        return self._session.read.parquet(self._rows)

    def _table(self) -> str:
        name = f"orders_{next(self._numbers)}"
        self._ask(f"CREATE TABLE {name} ({', '.join(f'{one} {kind}' for one, (_, kind) in _COLUMNS.items())})")
        return name

    def _require_all(self, table: str) -> None:
        """Counts what is there, and makes room."""
        found = self._ask(f"SELECT count(*), sum(id) FROM {table}")
        assert found == [(ROWS, ROWS * (ROWS - 1) // 2)], found
        self._ask(f"DROP TABLE {table}")

    def _ask(self, statement: str) -> list[tuple[object, ...]]:
        made = psycopg2.connect(self._endpoint, user="postgres")
        with closing(made) as connection, connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []
