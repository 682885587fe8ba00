"""A task that reads a source and writes its files needs as much memory for many rows as for a fifth of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from falcon_assets.compute.spark.data.dataset import OutputData
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import ReadPart, datasource_types
from falcon_assets.features.transfers.extraction import read_parts
from falcon_assets.features.transfers.task_files import fits, write_in_tasks
from falcon_assets.model.datasource import DatasourceThrottle
from tests.builders import make_feed
from tests.features.transfers.source import access_of, asked

pytestmark = pytest.mark.soak
TEXT, ROWS, FEW = "x" * 1000, 300_000, 60_000
BIG_TEXT, BIG_ROWS, FEW_BIG = "x" * 1_000_000, 300, 60
MARGIN_MB = 60
"""The other rows are four times as many MB, at least."""
NUMBERS = {
    "postgresql": "generate_series(1, {}) AS numbers(n)",
    "mysql": "(SELECT seq AS n FROM seq_1_to_{}) AS numbers",
    "sqlite": "(WITH RECURSIVE o(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM o WHERE n < {}) SELECT n FROM o) AS s",
}


@dataclass(frozen=True)
class Measured:
    """A part that writes the peak of the memory of its worker into a file."""

    part: ReadPart
    file: Path

    def batches(self) -> Iterator[pa.RecordBatch]:
        Path("/proc/self/clear_refs").write_text("5")  # the worker may have run other tasks
        yield from self.part.batches()
        lines = Path("/proc/self/status").read_text().splitlines()
        (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
        self.file.write_text(peak)


@pytest.fixture(params=list(NUMBERS))
def access(request: pytest.FixtureRequest, tmp_path: Path) -> Access:
    if request.param == "postgresql":
        return access_of(request.getfixturevalue("database"))
    if request.param == "mysql":
        port = request.getfixturevalue("mariadb").port
        return Access("shop", "mysql", f"mysql://127.0.0.1:{port}/mysql", DatasourceThrottle(), "root")
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute("VACUUM")
    return Access("shop", "sqlite", f"sqlite:{tmp_path}/shop.db", DatasourceThrottle())


@pytest.mark.parametrize(
    ("text", "few", "many"), [(TEXT, FEW, ROWS), (BIG_TEXT, FEW_BIG, BIG_ROWS)], ids=["small_rows", "big_rows"]
)
def test_memory_does_not_grow_with_rows(
    spark: SparkSession, access: Access, tmp_path: Path, text: str, few: int, many: int
) -> None:
    first, second = (peak_mb(spark, access, tmp_path / str(rows), text, rows) for rows in (few, many))
    print(f"{access.type}: {first:.0f} MB for {few:,} rows of {len(text):,} bytes, {second:.0f} MB for {many:,}")  # noqa: T201
    assert second < first + MARGIN_MB


def peak_mb(spark: SparkSession, access: Access, folder: Path, text: str, rows: int) -> float:
    """Of the worker of Spark that reads so many, with Python and Arrow."""
    query = f"SELECT n AS id, '{text}' AS text FROM {NUMBERS[access.type].format(rows)}"
    declared: dict[str, Any] = {"source": {"name": "shop", "query": query}}
    with datasource_types()[access.type].open_reading(access, asked(1, **declared)) as reading:
        (part,) = reading.parts
        measured = replace(reading, parts=[Measured(part, folder.with_suffix(".peak"))])  # type: ignore[type-var]
        data = OutputData("target", make_feed(format="parquet"), folder.as_uri())
        assert fits(data, reading.columns, spark.conf.getAll)
        write_in_tasks(read_parts(spark, measured), measured, data, "primary")
    assert pq.read_table(folder, columns=["id"]).num_rows == rows
    return int(folder.with_suffix(".peak").read_text()) / 1000
