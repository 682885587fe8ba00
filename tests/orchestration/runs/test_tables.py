"""Processes that read and write tables, in a Hive Metastore and in an Iceberg catalog, by real Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import load_catalog
from sqlalchemy import select

from falcon_assets.history.tables import CONSUMED
from falcon_assets.storage.tables.catalog import Partition
from tests.builders import cluster_yaml
from tests.orchestration.replication_world import ReplicationWorld
from tests.registries import HIVE_IN_SOAK, Tables, iceberg
from tests.world import MakeWorld

SPAN = "validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T08:00Z}"
ON = f"clusters: [{{name: hive, {SPAN}}}, {{name: iceberg, {SPAN}}}]"
FEED = """---
kind: feed
name: NAME
frequency: hours(1)
late_arrival: {cut_off: hours(2)}
table: {uri: "catalog:default:NAME#ds=${YEAR}-${MONTH}-${DAY}-${HOUR}WHICH", create: CREATE}
ON
schedule: true
"""
PROCESS = """---
kind: process
name: NAME
ON
frequency: hours(1)
inputs: [{name: rows, feed: FROM, start: "now(0,0)", end: "now(0,0)"}]
outputs: [{name: out, feed: TO, instance: "now(0,0)"}]
workflow: {engine: spark-sql, path: NAME.sql}
late_process:
  {policy: backoff, delay: minutes(10), inputs: [{input: rows, workflow: {engine: spark-sql, path: NAME.sql}}]}
schedule: true
"""


def filled(text: str, **values: str) -> str:
    for name, value in {**values, "\nON": "\n" + ON}.items():
        text = text.replace(name, value)
    return text


ENTITIES = "".join([
    filled(FEED, NAME="landed", WHICH=";region=*", CREATE="false"),
    filled(FEED, NAME="counted", WHICH="", CREATE="true"),
    filled(FEED, NAME="arrived", WHICH=";region=*", CREATE="false"),
    filled(FEED, NAME="parted", WHICH=";region=*;carrier=*", CREATE="true"),
    """---
kind: feed
name: report
frequency: hours(1)
format: json
locations: {data: "/report/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
""" + ON + "\nschedule: true\n",
    filled(PROCESS, NAME="count", FROM="landed", TO="counted"),
    filled(PROCESS, NAME="part", FROM="arrived", TO="parted"),
    filled(PROCESS, NAME="tell", FROM="counted", TO="report"),
])  # fmt: skip
SQL = {
    "count.sql": "SELECT region, count(*) AS flights, max(ds) AS hour, current_timestamp() AS at FROM rows GROUP BY 1",
    "part.sql": "SELECT carrier, region, count(*) AS flights FROM rows GROUP BY ALL",
    "tell.sql": "SELECT sum(flights) AS n, min(ds) AS ds FROM rows",
}


@pytest.fixture(scope="module")
def world(database: str, hive: str, make_world: MakeWorld) -> ReplicationWorld:
    clusters = ""
    for name, endpoint in {"hive": hive, "iceberg": iceberg(database)}.items():
        interfaces = {"write": {"endpoint": f"data/{name}"}, "execute": {"endpoint": "local[2]"}}
        clusters += cluster_yaml(name, interfaces={**interfaces, "registry": {"endpoint": endpoint}})
    return make_world({"all.yaml": clusters + ENTITIES, **SQL}, ReplicationWorld)


@pytest.fixture(params=HIVE_IN_SOAK)
def tables(request: pytest.FixtureRequest, world: ReplicationWorld) -> Callable[[str], Tables]:
    cluster = world.store.cluster(request.param)

    def table(name: str) -> Tables:
        assert cluster.interfaces.registry
        keys = ("ds",) if name == "counted" else ("ds", "region")
        found = Tables(cluster.interfaces.registry.endpoint, world.settings.home / cluster.name, keys)
        found.name = name
        return found

    return table


def files_of(partition: Partition | None) -> list[Path]:
    assert partition is not None
    places = [Path("/" + place.removeprefix("file:").lstrip("/")) for place in partition.places]
    return [file for place in places for file in (place.glob("part-*") if place.is_dir() else [place])]


def counts(partition: Partition | None) -> dict[str, int]:
    rows = [row for file in files_of(partition) for row in pq.read_table(file).to_pylist()]
    return {row["region"]: row["flights"] for row in rows}


def report(world: ReplicationWorld, cluster: str) -> list[dict[str, Any]]:
    folder = world.settings.home / f"data/{cluster}/report/2013-01-01-01"
    return [json.loads(part.read_text()) for part in folder.glob("part-*")]


def test_tables_are_read_written_and_changed(world: ReplicationWorld, tables: Callable[[str], Tables]) -> None:
    landed, counted = tables("landed"), tables("counted")
    on = landed.home.name
    landed.make()
    landed.land(("2013-01-01-01", "US"), 1, 2)
    landed.land(("2013-01-01-01", "EU"), 3)
    assert len(world.step("01:00", "landed", on)) == 1
    first = counted.there("2013-01-01-01")
    assert counts(first) == {"US": 2, "EU": 1}
    (published,) = world.published(on, "counted", 1)
    assert first and published.version == first.version
    assert published.path == "catalog:default:counted#ds=2013-01-01-01"
    assert len(world.step("01:01", "counted", on)) == 1
    assert report(world, on) == [{"n": 3, "ds": "2013-01-01-01"}]
    with world.ledger.engine.connect() as connection:
        read = select(CONSUMED.c.version).where(CONSUMED.c.process == "tell", CONSUMED.c.cluster == on)
        assert connection.execute(read).scalars().all() == [published.version]
    old = files_of(first)
    landed.land(("2013-01-01-01", "EU"), 3, 4, 5)
    assert len([*world.step("01:20", "landed", on), *world.step("01:40", "landed", on)]) == 1  # late data
    assert counts(counted.there("2013-01-01-01")) == {"US": 2, "EU": 3}
    assert all(file.exists() for file in old), "somebody may be reading them"
    assert len([*world.step("02:00", "counted", on), *world.step("02:20", "counted", on)]) == 1
    assert report(world, on) == [{"n": 5, "ds": "2013-01-01-01"}]


@pytest.mark.soak
def test_an_output_is_as_many_partitions_as_its_data_has_values(
    world: ReplicationWorld, tables: Callable[[str], Tables]
) -> None:
    arrived, parted = tables("arrived"), tables("parted")
    on, catalog = arrived.home.name, parted.catalog

    def there() -> dict[tuple[str, ...], int]:
        found = catalog.partitions("default", "parted", catalog.values("default", "parted", {}))
        return {
            values[1:]: sum(row["flights"] for file in files_of(one) for row in pq.read_table(file).to_pylist())
            for values, one in found.items()
        }

    arrived.make()
    for region in ("US", "Ü/ 1"):
        arrived.land(("2013-01-01-01", region), 1, 2)
    assert len(world.step("01:00", "arrived", on)) == 1
    assert there() == {("US", "UA"): 2, ("Ü/ 1", "UA"): 2}
    (published,) = world.published(on, "parted", 1)
    assert (published.records, published.path) == (2, "catalog:default:parted#ds=2013-01-01-01;region=*;carrier=*")
    arrived.land(("2013-01-01-01", "US"), 3)
    gone = arrived.there("2013-01-01-01", "Ü/ 1")
    assert gone
    catalog.drop("default", "arrived", [gone])
    arrived.land(("2013-01-01-01", "DE"), 3, 4, 5)
    assert len([*world.step("01:20", "arrived", on), *world.step("01:40", "arrived", on)]) == 1
    assert there() == {("US", "UA"): 1, ("DE", "UA"): 3}


def test_others_read_what_was_written(world: ReplicationWorld) -> None:
    registry = world.store.cluster("iceberg").interfaces.registry
    assert registry
    url, _, name = registry.endpoint.removeprefix("iceberg+").partition("#")
    table = load_catalog(name, type="sql", uri=url.replace("postgresql://", "postgresql+psycopg2://")).load_table(
        "default.counted"
    )
    rows = table.scan().to_arrow().to_pylist()
    assert {(row["ds"], row["region"], row["flights"]) for row in rows} == {
        ("2013-01-01-01", "US", 2),
        ("2013-01-01-01", "EU", 3),
    }
    summary = table.current_snapshot().summary
    assert summary["falcon.instance"] == "count at 2013-01-01T01:00Z" and summary["falcon.records"] == "2"
