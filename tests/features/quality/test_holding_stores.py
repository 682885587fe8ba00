"""What is held on an object store, and in tables."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

from falcon_assets.features.quality.sensors import CheckingPass
from falcon_assets.storage.cluster_store import ClusterStore
from tests.builders import cluster_yaml
from tests.orchestration.replication_world import ReplicationWorld, feed, on
from tests.registries import Tables, iceberg
from tests.s3_server import ENVIRON, lake
from tests.world import MakeWorld

CHECKS = "on_error: hold\nchecks: [{name: positive, rule: in_range, column: n, min: 0}]\n"
SPAN = "validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T08:00Z}"
ENTITIES = f"""---
kind: feed
name: counted
frequency: hours(1)
table: {{uri: "catalog:default:counted#ds=${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}", create: true}}
clusters: [{{name: tables, {SPAN}}}]
{CHECKS}---
kind: process
name: count
clusters: [{{name: tables, {SPAN}}}]
frequency: hours(1)
inputs: [{{name: rows, feed: landed, start: "now(0,0)", end: "now(0,0)"}}]
outputs: [{{name: out, feed: counted, instance: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: a.sql}}
schedule: true
---
kind: process
name: add
clusters: [{{name: lake, {SPAN}}}]
frequency: hours(1)
inputs: [{{name: rows, feed: rows, start: "now(0,0)", end: "now(0,0)"}}]
outputs: [{{name: out, feed: totals, instance: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: a.sql}}
schedule: true
"""


@pytest.fixture(scope="module")
def world(database: str, lake_url: str, make_world: MakeWorld) -> ReplicationWorld:
    interfaces = {"write": {"endpoint": "data/tables"}, "execute": {"endpoint": "local[2]"}}
    tables = cluster_yaml("tables", interfaces={**interfaces, "registry": {"endpoint": iceberg(database)}})
    feeds = feed("rows", on("lake", "source")) + feed("landed", on("tables", "source"))
    feeds += feed("totals", on("lake", "source"), more=CHECKS)
    entities = cluster_yaml(**lake(lake_url)) + tables + feeds + ENTITIES
    return make_world({"all.yaml": entities, "a.sql": "SELECT n FROM rows"}, ReplicationWorld)


HOUR = "2013-01-01T01:00Z"


def outcomes(world: ReplicationWorld, feed: str) -> list[bool]:
    return [result.success for _, result in world.play("01:00", world.chosen(feed))]


def computed_again(world: ReplicationWorld, feed: str) -> bool:
    (workload,) = world.chosen(feed)
    return world.run_job(workload.job_name, "01:30", partition_key=HOUR).success


def rows(world: ReplicationWorld, sql: str, feed: str) -> list[str]:
    world.ledger.catch_up()
    with world.ledger.engine.connect() as connection:
        return list(connection.execute(text(sql), {"feed": feed}).scalars())


def places(world: ReplicationWorld, feed: str) -> list[str]:
    return rows(world, "SELECT place FROM falcon.quality_held WHERE feed = :feed", feed)


def verdicts(world: ReplicationWorld, feed: str) -> list[str]:
    return rows(world, "SELECT verdict FROM falcon.quality_verdicts WHERE feed = :feed", feed)


def checked_after(world: ReplicationWorld, cluster: str) -> int:
    return CheckingPass(world.store, world.store.cluster(cluster), world.at("02:00")).run(world.ledger)[0]


def test_an_object_store_has_it_beside_what_is_published(world: ReplicationWorld) -> None:
    store = ClusterStore(world.store.cluster("lake"), world.settings.home, ENVIRON)

    def land(value: int) -> None:
        store.fs.pipe_file(store.path("/rows/2013-01-01-01/a.json"), json.dumps({"n": value}).encode())
        store.fs.pipe_file(store.path("/rows/2013-01-01-01/_SUCCESS"), b"")

    def read(place: str) -> list[dict[str, int]]:
        store.fs.invalidate_cache()
        files = [str(name) for name in store.fs.find(place) if str(name).endswith(".json")]
        return [json.loads(line) for name in files for line in store.fs.cat_file(name).decode().splitlines()]

    land(-1)
    assert outcomes(world, "rows") == [False]
    (place,) = places(world, "totals")
    assert (read(place), read(store.path("/totals"))) == ([{"n": -1}], [])
    assert place in world.rows("add")[1]["reason"]
    land(5)
    assert computed_again(world, "rows")
    assert (read(place), read(store.path("/totals"))) == ([], [{"n": 5}])
    assert store.fs.find(store.staging) == []
    assert (places(world, "totals"), verdicts(world, "totals"), checked_after(world, "lake")) == ([], ["VALID"], 0)


def test_a_table_has_no_partition_of_it(world: ReplicationWorld, database: str) -> None:
    world.land("tables", "landed", 1, a=-1)
    assert outcomes(world, "landed") == [False]
    (place,) = places(world, "counted")
    (file,) = Path(place.removeprefix("file://")).glob("*.parquet")
    assert pq.read_table(file).to_pylist() == [{"n": -1}]
    assert place in world.rows("count")[1]["reason"]
    world.land("tables", "landed", 1, a=5)
    assert computed_again(world, "landed")
    cluster = world.store.cluster("tables")
    assert cluster.interfaces.registry
    tables = Tables(cluster.interfaces.registry.endpoint, world.settings.home / "tables", ("ds",))
    tables.name = "counted"
    there = tables.there("2013-01-01-01")
    assert there is not None
    assert [pq.read_table(one.removeprefix("file://")).to_pylist() for one in there.places] == [[{"n": 5}]]
    assert (places(world, "counted"), verdicts(world, "counted"), checked_after(world, "tables")) == ([], ["VALID"], 0)
