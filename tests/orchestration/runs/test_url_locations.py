"""Locations that are whole URLs, on a real S3 server and on a file system apart from the cluster's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import select, text

from falcon_assets.features.landing.operations import collect_instances
from falcon_assets.features.retention.passes import RetentionPass
from falcon_assets.history.tables import CONSUMED, EVICTIONS
from falcon_assets.operations.installation import open_installation
from falcon_assets.settings import Settings
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.roots import MARK
from tests.builders import cluster_yaml
from tests.hours import hour
from tests.orchestration.replication_world import ReplicationWorld
from tests.s3_server import ENVIRON, KEY, SECRET
from tests.world import MakeWorld

OPTIONS = "{key: {env: LAKE_KEY}, secret: {env: LAKE_SECRET}, client_kwargs: {endpoint_url: '%s'}}"
ENTITIES = (
    f"{cluster_yaml('east')}{cluster_yaml('vault', storage_options='OPTIONS')}"
    """---
kind: feed
name: rows
frequency: hours(1)
availability_flag: _SUCCESS
format: json
schema: "n int"
late_arrival: {cut_off: hours(2)}
locations: {data: "/rows/${YEAR}-${MONTH}-${DAY}-${HOUR}", storage_options: OPTIONS}
clusters:
  - name: east
    type: source
    validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T08:00Z}
    retention: {limit: hours(4), action: archive, archive_to: "s3://lake/old/rows/${YEAR}${MONTH}${DAY}/${HOUR}"}
  - name: vault
    type: target
    validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T08:00Z}
    locations: {data: "S3://lake/${cluster.name}//rows/${YEAR}/${MONTH}/${DAY}/${HOUR}"}
    retention: {limit: hours(2)}
schedule: true
---
kind: feed
name: landed
frequency: hours(1)
availability_flag: _SUCCESS
locations: {data: "s3://lake/in/${YEAR}/${MONTH}/${DAY}/${HOUR}", storage_options: OPTIONS}
clusters: [{name: east, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T08:00Z}}]
---
kind: feed
name: outside
frequency: hours(1)
availability_flag: _SUCCESS
format: json
locations: {data: "file://OUTSIDE/all/${YEAR}-${MONTH}-${DAY}-${HOUR}", stats: "/stats/${YEAR}${MONTH}${DAY}${HOUR}"}
clusters:
  - name: east
    validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T08:00Z}
    retention: {limit: hours(4), action: archive, archive_to: "/old/outside/${YEAR}${MONTH}${DAY}${HOUR}"}
schedule: true
---
kind: feed
name: inside
frequency: hours(1)
format: json
locations: {data: "/inside/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
clusters: [{name: east, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T08:00Z}}]
---
kind: process
name: export
clusters: [{name: east, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T08:00Z}}]
frequency: hours(1)
inputs: [{name: rows, feed: rows, start: "now(0,0)", end: "now(0,0)"}]
outputs:
  - {name: outside, feed: outside, instance: "now(0,0)"}
  - {name: inside, feed: inside, instance: "now(0,0)"}
workflow: {engine: spark-sql, path: both.sql}
schedule: true
---
kind: feed
name: again
frequency: hours(1)
format: json
locations: {data: "/again/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
clusters: [{name: east, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T08:00Z}}]
---
kind: process
name: import
clusters: [{name: east, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T08:00Z}}]
frequency: hours(1)
inputs: [{name: outside, feed: outside, start: "now(0,0)", end: "now(0,0)"}]
outputs: [{name: again, feed: again, instance: "now(0,0)"}]
workflow: {engine: spark-sql, path: again.sql}
schedule: true
"""
)
BOTH = """CREATE TEMPORARY VIEW outside AS SELECT n FROM rows;
CREATE TEMPORARY VIEW inside AS SELECT count(*) AS c FROM rows"""


@pytest.fixture(scope="module")
def world(lake_url: str, settings: Settings, make_world: MakeWorld) -> ReplicationWorld:
    outside = str(settings.home / "elsewhere")
    entities = ENTITIES.replace("OPTIONS", OPTIONS % lake_url).replace("OUTSIDE", outside)
    sql = {"both.sql": BOTH, "again.sql": "SELECT n + 1 AS n FROM outside"}
    return make_world({"all.yaml": entities, **sql}, ReplicationWorld)


def bucket(world: ReplicationWorld) -> ClusterStore:
    store = ClusterStore(world.store.cluster("vault"), world.settings.home, ENVIRON, root="s3://lake")
    store.fs.invalidate_cache()
    return store


def objects(world: ReplicationWorld, prefix: str) -> list[str]:
    return sorted(str(name)[len("lake/") :] for name in bucket(world).fs.find(f"lake/{prefix}"))


def values(folder: Path) -> list[int]:
    parts = [part.read_text() for part in folder.glob("part-*")]
    return sorted(value for part in parts for line in part.splitlines() for value in json.loads(line).values())


def passed(world: ReplicationWorld, time: str, cluster: str, *feeds: str) -> tuple[int, tuple[str, ...]]:
    on = world.store.cluster(cluster)
    retention = RetentionPass(world.store, on, [world.store.feed(name) for name in feeds], world.at(time), patience=0)

    def record(events: Sequence[dg.AssetObservation]) -> None:
        for event in events:
            world.instance.report_runless_asset_event(event)

    found = retention.run(world.ledger, "a-run", record)
    return found.instances, found.problems


def test_what_lands_at_a_url_is_collected(world: ReplicationWorld) -> None:
    fs = bucket(world).fs
    fs.pipe_file("lake/in/2013/01/01/01/part.csv", b"a")
    fs.pipe_file("lake/in/2013/01/01/01/_SUCCESS", b"")
    fs.pipe_file("lake/in/2013/01/01/02/part.csv", b"incomplete")
    world.collect("02:00")
    (seen,) = world.published("east", "landed", 1)
    assert (seen.path, seen.files, seen.bytes) == ("s3://lake/in/2013/01/01/01", 1, 1)
    assert world.published("east", "landed", 2) == []
    with open_installation(world.at("02:00")) as installation:
        (found,) = collect_instances(installation, "landed", hour(0), hour(2), "east")
    there = "s3://lake/in/2013/01/01"
    assert list(found.missing) == [
        (hour(0), f"there is nothing at {there}/00"),
        (hour(2), f"there is no _SUCCESS in {there}/02"),
    ]


def test_archival_as_replication(world: ReplicationWorld) -> None:
    """A target whose location is a URL: Falcon's way to archive to S3."""
    world.land("east", "rows", 1, a=1, b=2)
    assert world.step("01:00", "rows", "vault") == ["rows from east on vault, 2013-01-01T01:00Z, attempt 1"]
    folder = "vault/rows/2013/01/01/01"
    assert objects(world, "vault/rows/2013") == [f"{folder}/{name}" for name in ("_SUCCESS", "a.json", "b.json")]
    assert [one.path for one in world.published("vault", "rows", 1)] == [f"s3://lake/{folder}"]
    assert [one.verification for one in world.copied("vault", "rows", 1)] == ["etag"]
    assert not (world.settings.home / "data/vault").exists()


def test_a_late_change_is_replicated_to_the_url(world: ReplicationWorld) -> None:
    world.land("east", "rows", 1, b=20)
    world.collect("01:20")
    assert world.step("03:00", "rows", "vault") == ["rows from east on vault, 2013-01-01T01:00Z, attempt 2"]
    again = world.copied("vault", "rows", 1)[-1]
    assert (again.files_copied, again.files_skipped) == (1, 1)


def test_a_process_writes_to_two_stores_and_reads_from_both(world: ReplicationWorld) -> None:
    world.step("01:00", "rows", "east")
    home = world.settings.home
    outside = home / "elsewhere/all/2013-01-01-01"
    assert values(outside) == [1, 20]
    assert values(home / "data/east/inside/2013-01-01-01") == [2]
    assert world.published("east", "outside", 1)[-1].path == f"file://{outside}"
    assert world.published("east", "inside", 1)[-1].path == str(home / "data/east/inside/2013-01-01-01")
    world.step("01:00", "outside", "east")
    assert values(home / "data/east/again/2013-01-01-01") == [2, 21]
    with world.ledger.engine.connect() as connection:
        read = connection.execute(select(CONSUMED.c.version).where(CONSUMED.c.process == "import")).scalars().all()
    assert read == [world.published("east", "outside", 1)[-1].version]
    assert {one.name for one in (home / "elsewhere/all").iterdir()} == {".falcon", MARK, "2013-01-01-01"}


def test_eviction_at_a_url(world: ReplicationWorld) -> None:
    assert passed(world, "03:00", "vault", "rows") == (0, ())
    assert passed(world, "03:01", "vault", "rows") == (1, ())
    assert objects(world, "vault/rows/2013") == []
    assert objects(world, "in") != []


def test_archiving_to_a_url_and_from_one(world: ReplicationWorld) -> None:
    stats = world.settings.home / "data/east/stats/2013010101"
    stats.parent.mkdir(parents=True)
    stats.write_text("42")
    elsewhere = world.settings.home / "elsewhere/all"
    assert passed(world, "05:00", "east", "rows", "outside") == (0, ())
    assert passed(world, "05:01", "east", "rows", "outside") == (2, ())
    old = "old/rows/20130101/01"
    assert objects(world, "old") == [
        f"old/rows/{MARK}",
        *(f"{old}/{name}" for name in ("_SUCCESS", "a.json", "b.json")),
    ]
    assert not world.folder("east", "rows", 1).exists()
    archive = world.settings.home / "data/east/old/outside"
    assert values(archive / "2013010101") == [1, 20]
    assert (archive / "2013010101.stats").read_text() == "42"
    assert not stats.exists() and not (elsewhere / "2013-01-01-01").exists()
    assert not list((elsewhere / ".falcon/staging/evicted").iterdir()), "its space is freed"
    with world.ledger.engine.connect() as connection:
        found = select(EVICTIONS).where(EVICTIONS.c.cluster == "east").order_by(EVICTIONS.c.feed)
        outside, rows = connection.execute(found).all()
    assert (rows.archive_root, rows.archive_to) == ("s3://lake/old/rows", "/20130101/01")
    assert [one["root"] for one in outside.locations] == [f"file://{elsewhere}", None]
    assert (rows.instance, rows.done_at is not None) == (hour(1), True)


def test_credentials_are_in_no_event_and_in_no_run(world: ReplicationWorld) -> None:
    with world.ledger.engine.connect() as connection:
        for table, column in (("event_logs", "event"), ("runs", "run_body")):
            rows = connection.execute(text(f"SELECT count(*), string_agg({column}, '') FROM {table}")).one()
            assert rows[0] > 0
            assert KEY not in rows[1] and SECRET not in rows[1]
    assert SECRET not in repr(world)
