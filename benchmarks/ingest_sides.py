"""The sides of the ingest benchmark: ``python -m benchmarks.ingest_sides URL FOLDER PROGRAMS ROWS`` prints seconds."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from falcon_assets.compute.spark.data.dataset import OutputData
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import ReadRequest, datasource_types
from falcon_assets.features.transfers.extraction import read_parts
from falcon_assets.features.transfers.task_files import fits, write_in_tasks
from falcon_assets.model.datasource import DatasourceThrottle
from falcon_assets.model.instant import parse_instant
from falcon_assets.model.transfer import Import
from tests.builders import make_feed
from tests.features.transfers.source import endpoint_of

JAR = Path("/usr/share/java/postgresql.jar")
ROUNDS, PARTS = 3, 4
FEED = make_feed(name="orders", format="parquet")
_AT = parse_instant("2013-01-01T00:00Z")


def main(url: str, folder: str, programs: str, rows: str) -> None:
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraClassPath", str(JAR))
        .config("spark.driver.memory", "2g")
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        .getOrCreate()
    )
    endpoint, target = endpoint_of(url), Path(folder, "target")

    def falcon(query: str | None = None) -> None:
        source = {"name": "shop", **({"query": query} if query else {"table": "orders"})}
        request = ReadRequest(Import.model_validate({"source": source}), _AT, _AT, None, None, PARTS)
        access = Access("shop", "postgresql", endpoint, DatasourceThrottle(connections=PARTS + 1), "postgres")
        with datasource_types()["postgresql"].open_reading(access, request) as reading:
            written = OutputData("target", FEED, target.as_uri())
            assert fits(written, reading.columns, session.conf.getAll)
            write_in_tasks(read_parts(session, reading), reading, written, "primary")

    def jdbc(query: str = "orders") -> None:
        """As its documentation has it: ranges of the key, and more rows at once than the driver's default, all."""
        reader = session.read.format("jdbc").options(
            url=f"jdbc:{endpoint}",
            user="postgres",
            dbtable=query,
            partitionColumn="id",
            lowerBound=1,
            upperBound=int(rows),
            numPartitions=PARTS,
            fetchsize=10_000,
        )
        reader.load().write.parquet(str(target))

    def copy() -> None:
        target.mkdir()
        said = f"\\copy orders TO '{target}/orders.csv' (FORMAT csv)"
        subprocess.run([f"{programs}/psql", "-q", "-d", endpoint, "-U", "postgres", "-c", said], check=True)

    few = "SELECT * FROM orders WHERE id < 10000"
    for warm in (lambda: falcon(few), lambda: jdbc(f"({few}) AS few")):
        _seconds(warm, target)
    found: dict[str, list[float]] = {"falcon": [], "jdbc": [], "copy": []}
    for number in range(ROUNDS):
        for side in (falcon, jdbc, copy):
            found[side.__name__].append(_seconds(side, target, Path(folder, f"{side.__name__}{number}")))
    _require_the_same(Path(folder, "falcon0"), Path(folder, "jdbc0"))
    session.stop()
    print(json.dumps(found))


def _seconds(side: Callable[[], None], target: Path, kept: Path | None = None) -> float:
    """Of one side; what it wrote is kept there for the first round, else removed."""
    started = time.perf_counter()
    side()
    seconds = time.perf_counter() - started
    if kept is not None and kept.name.endswith("0"):
        target.rename(kept)
    else:
        shutil.rmtree(target)
    return seconds


def _require_the_same(ours: Path, plain: Path) -> None:
    """Ends with a sentence where a column of the files differs."""
    for name in pq.read_schema(next(ours.glob("*.parquet"))).names:
        one, other = (pq.read_table(folder, columns=list(dict.fromkeys(["id", name]))) for folder in (ours, plain))
        if not one.sort_by("id")[name].equals(other.sort_by("id")[name].cast(one[name].type)):
            raise SystemExit(f"column {name} is not the same as that of Spark's JDBC reader")


if __name__ == "__main__":
    main(*sys.argv[1:])
