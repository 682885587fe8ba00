"""What is held on an object store, and in tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

from falcon_assets.features.quality.operations import AcceptInstance, InstanceQuality
from falcon_assets.features.quality.sensors import CheckingPass
from falcon_assets.features.quality.verdict import InstanceVerdict
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.installation import open_installation
from falcon_assets.settings import Settings
from falcon_assets.storage.cluster_store import ClusterStore
from tests.builders import cluster_yaml, process_yaml
from tests.orchestration.replication_world import ReplicationWorld, feed, on
from tests.registries import HIVE_IN_SOAK, Tables, endpoint_of
from tests.s3_server import ENVIRON, lake
from tests.world import MakeWorld

CHECKS = "on_error: hold\nchecks: [{name: positive, rule: in_range, column: n, min: 0}]\n"
TYPED = """on_error: hold
checks:
  - {name: positive, rule: in_range, column: n, min: 0}
  - {name: typed, rule: sql, query: "SELECT * FROM data WHERE typeof(ds) <> 'date' OR typeof(hour) <> 'int'"}
"""
SPAN = "validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T08:00Z}"
IN_TABLE = f"""---
kind: feed
name: counted-CLUSTER
frequency: hours(1)
table: {{uri: "catalog:default:TABLE#ds=${{YEAR}}${{MONTH}}${{DAY}};hour=${{HOUR}}"}}
clusters: [{{name: CLUSTER, {SPAN}}}]
{TYPED}"""


def adding(cluster: str, reads: str, writes: str) -> str:
    return process_yaml(f"add-{cluster}", reads, writes, on_cluster(cluster), schedule=True)


def on_cluster(name: str) -> dict[str, Any]:
    return {"name": name, "validity": {"start": "2013-01-01T00:00Z", "end": "2013-01-01T08:00Z"}}


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


def accepted(world: ReplicationWorld, feed: str) -> InstanceQuality:
    with open_installation(world.settings) as installation:
        return AcceptInstance(feed=feed, instance=parse_instant(HOUR), reason="why").run(installation)


def test_an_object_store_has_it_beside_what_is_published(lake_url: str, make_world: MakeWorld) -> None:
    feeds = feed("rows", on("lake", "source")) + feed("totals", on("lake", "source"), more=CHECKS)
    entities = cluster_yaml(**lake(lake_url)) + feeds + adding("lake", "rows", "totals")
    world = make_world({"all.yaml": entities, "a.sql": "SELECT n FROM rows"}, ReplicationWorld)
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
    assert place in world.rows("add-lake")[1]["reason"]
    land(5)
    assert computed_again(world, "rows")
    assert (read(place), read(store.path("/totals"))) == ([], [{"n": 5}])
    assert store.fs.find(store.staging) == []
    assert (places(world, "totals"), verdicts(world, "totals"), checked_after(world, "lake")) == ([], ["VALID"], 0)
    land(-3)
    assert not computed_again(world, "rows")
    assert (read(place), read(store.path("/totals"))) == ([{"n": -3}], [{"n": 5}])
    assert accepted(world, "totals").verdict is InstanceVerdict.VALID
    assert (read(place), read(store.path("/totals"))) == ([], [{"n": -3}])
    assert store.fs.find(store.staging) == []
    assert (places(world, "totals"), checked_after(world, "lake")) == ([], 0)


@pytest.mark.parametrize("kind", HIVE_IN_SOAK)
def test_a_table_has_no_partition_of_it(
    request: pytest.FixtureRequest, kind: str, make_world: MakeWorld, settings: Settings
) -> None:
    """Its keys have types, in which they are checked."""
    counted = f"counted-{kind}"
    tables = Tables(endpoint_of(request, kind), settings.home / kind, ("ds", "hour"))
    tables.make(pa.date32(), pa.int32(), columns=pa.schema([("n", pa.int32())]))
    assert tables.cluster.interfaces.registry
    registry = {"endpoint": tables.cluster.interfaces.registry.endpoint}
    interfaces = {"write": {"endpoint": f"data/{kind}"}, "execute": {"endpoint": "local[2]"}, "registry": registry}
    entities = cluster_yaml(kind, interfaces=interfaces) + feed("landed", on(kind, "source"))
    entities += IN_TABLE.replace("TABLE", tables.name).replace("CLUSTER", kind) + adding(kind, "landed", counted)
    world = make_world({"all.yaml": entities, "a.sql": "SELECT n FROM rows"}, ReplicationWorld)

    def there() -> list[list[dict[str, int]]]:
        partition = tables.there("2013-01-01", "1")
        places = [Path(urlsplit(one).path) for one in partition.places] if partition else []
        files = [file for one in places for file in (sorted(one.glob("*.parquet")) if one.is_dir() else [one])]
        return [pq.read_table(file, partitioning=None).to_pylist() for file in files]

    world.land(kind, "landed", 1, a=-1)
    assert outcomes(world, "landed") == [False]
    (place,) = places(world, counted)
    (file,) = Path(place.removeprefix("file://")).glob("*.parquet")
    assert (pq.read_table(file, partitioning=None).to_pylist(), there()) == ([{"n": -1}], [])
    reason = world.rows(f"add-{kind}")[1]["reason"]
    assert place in reason and "positive: 1 of 1 rows" in reason and "typed:" not in reason
    world.land(kind, "landed", 1, a=5)
    assert computed_again(world, "landed")
    assert (there(), file.exists()) == ([[{"n": 5}]], False)
    assert (places(world, counted), verdicts(world, counted), checked_after(world, kind)) == ([], ["VALID"], 0)
    world.land(kind, "landed", 1, a=-3)
    assert not computed_again(world, "landed")
    assert there() == [[{"n": 5}]]
    assert accepted(world, counted).verdict is InstanceVerdict.VALID
    assert (there(), places(world, counted), checked_after(world, kind)) == ([[{"n": -3}]], [], 0)
