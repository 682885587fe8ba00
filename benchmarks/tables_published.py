"""Partitions published: ``python -m benchmarks.tables_published ENDPOINT FOLDER`` prints the seconds of each.

The files are there, written once; each side makes a partition of a copy of them. Ours also checks whether they fit the
table, syncs them, notes what a crash would leave and reads back what the catalog has: with one instance for each, and
with instances that are many partitions.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from falcon_assets.model.cluster import Cluster
from falcon_assets.storage.kinds.tables.publication import TablePublication
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.tables.table_store import TableStore

OWN, PLAIN = 1_000, 20
ROUNDS = 4
TOGETHER = OWN // ROUNDS
"""Partitions of one instance."""
_COLUMNS = pa.schema([("carrier", pa.string()), ("flights", pa.int64())])


def main(endpoint: str, folder: str) -> None:
    home = Path(folder, "published")
    interfaces = {
        "write": {"endpoint": "data"},
        "execute": {"endpoint": "local[2]"},
        "registry": {"endpoint": endpoint},
    }
    cluster = Cluster.model_validate({"kind": "cluster", "name": "primary", "interfaces": interfaces})
    store = TableStore(cluster, home, {})
    table = home / "table"
    store.catalog.create("default", "published", _COLUMNS, ("ds",), "parquet", f"file://{table}")
    others = home / "together"
    store.catalog.create("default", "published_together", _COLUMNS, ("ds", "region"), "parquet", f"file://{others}")
    table.mkdir(parents=True, exist_ok=True)  # the metastore makes it
    written = home / "part-0.parquet"
    pq.write_table(pa.table({"carrier": ["UA"], "flights": [1]}, _COLUMNS), written)
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.hadoop.hive.metastore.uris", endpoint)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.warehouse.dir", f"{home}/warehouse")
        .enableHiveSupport()
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    session.sql("SHOW PARTITIONS published").collect()  # its client of the metastore is warm

    def ours(name: str) -> None:
        target = OutputTarget(f"catalog:default:published#ds={name}", None, format="parquet")
        with TablePublication(store, name, {"out": target}) as publication:
            place = Path(publication.staging("out"))
            place.mkdir()
            shutil.copy(written, place)
            publication.commit("out")

    def together(name: str) -> None:
        target = OutputTarget(f"catalog:default:published_together#ds={name};region=*", None, format="parquet")
        with TablePublication(store, name, {"out": target}) as publication:
            for number in range(TOGETHER):
                place = Path(publication.staging("out"), f"region={number}")
                place.mkdir(parents=True)
                shutil.copy(written, place)
            publication.commit("out")

    def plain(name: str) -> None:
        place = table / f"ds={name}"
        place.mkdir()
        shutil.copy(written, place)
        session.sql(f"ALTER TABLE published ADD PARTITION (ds = '{name}') LOCATION 'file://{place}'")

    found: dict[str, list[float]] = {"ours": [], "plain": [], "together": []}
    for number in range(ROUNDS):
        found["ours"].append(_each(ours, f"ours-{number}", OWN // ROUNDS))
        found["together"].append(_each(together, f"together-{number}", 1) / TOGETHER)
        found["plain"].append(_each(plain, f"plain-{number}", PLAIN // ROUNDS))
    there = len(store.catalog.values("default", "published", {}))
    assert there == OWN + PLAIN, there
    there = len(store.catalog.values("default", "published_together", {}))
    assert there == OWN, there
    session.stop()
    print(json.dumps(found))


def _each(publish: Callable[[str], None], name: str, count: int) -> float:
    """Seconds for one."""
    seconds = []
    for number in range(count):
        started = time.perf_counter()
        publish(f"{name}-{number}")
        seconds.append(time.perf_counter() - started)
    return mean(seconds)


if __name__ == "__main__":
    main(*sys.argv[1:])
