"""Processes whose inputs and outputs lie on a real S3 server, which their Spark cannot reach."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import select, text

from falcon_assets.history.tables import CONSUMED
from falcon_assets.storage.cluster_store import ClusterStore
from tests.builders import cluster_yaml
from tests.hours import hour
from tests.orchestration.replication_world import ReplicationWorld, feed, on
from tests.s3_server import ENVIRON, KEY, SECRET, lake
from tests.world import MakeWorld

PROCESS = """---
kind: process
name: %s
clusters: [{name: lake, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T08:00Z}}]
frequency: hours(1)
inputs: [{name: %s, feed: %s, start: "%s", end: "now(0,0)"}]
outputs: [{name: out, feed: %s, instance: "now(0,0)"}]
workflow: {engine: %s, path: %s}
late_process: {policy: backoff, delay: minutes(1), inputs: [{input: %s, workflow: {engine: %s, path: %s}}]}
schedule: true
"""
SUM = "SELECT sum(n) AS n FROM rows"
PARTS = """def run(spark, inputs, instance):
    assert instance.inputs["totals"][0].startswith("file://"), instance
    return inputs["totals"].selectExpr("n", "'a b' AS kind")
"""


def process(name: str, reads: str, since: str, writes: str, engine: str, path: str) -> str:
    return PROCESS % (name, reads, reads, since, writes, engine, path, reads, engine, path)


ENTITIES = "".join(
    (
        feed("rows", on("lake", "source")),
        feed("totals", on("lake", "source")),
        feed("parts", on("lake", "source"), more="partitions: [kind]\n"),
        feed("named", on("lake", "source")),
        """---
kind: feed
name: names
snapshot: true
frequency: hours(1)
format: json
schema: "n int, name string"
late_arrival: {cut_off: hours(1)}
locations: {data: "s3://lake/dimensions/names.json"}
clusters: [{name: lake, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T08:00Z}}]
""",
        process("name", "names", "now(0,0)", "named", "spark-sql", "name.sql"),
        process("add", "rows", "now(-1,0)", "totals", "spark-sql", "sum.sql"),
        process("split", "totals", "now(0,0)", "parts", "pyspark", "parts.py"),
    )
)


@pytest.fixture(scope="module")
def world(lake_url: str, make_world: MakeWorld) -> ReplicationWorld:
    definitions = cluster_yaml(**lake(lake_url)) + ENTITIES
    sql = {"sum.sql": SUM, "name.sql": "SELECT n FROM names"}
    return make_world({"all.yaml": definitions, "parts.py": PARTS, **sql}, ReplicationWorld)


def bucket(world: ReplicationWorld) -> ClusterStore:
    return ClusterStore(world.store.cluster("lake"), world.settings.home, ENVIRON)


def land(world: ReplicationWorld, number: int, **files: int) -> None:
    store = bucket(world)
    folder = store.path(f"/rows/2013-01-01-{number:02}")
    for name, value in files.items():
        store.fs.pipe_file(f"{folder}/{name}.json", json.dumps({"n": value}).encode())
    store.fs.pipe_file(f"{folder}/_SUCCESS", b"")


def read(world: ReplicationWorld, feed: str, number: int) -> dict[str, list[Any]]:
    """What lies in an instance, by the folders of its files."""
    store = bucket(world)
    folder = store.path(f"/{feed}/2013-01-01-{number:02}")
    found: dict[str, list[Any]] = {}
    for name in store.fs.find(folder):
        relative = str(name)[len(folder) + 1 :]
        lines = store.fs.cat_file(name).decode().splitlines()
        found.setdefault(relative.rpartition("/")[0] or ("" if lines else relative), []).extend(map(json.loads, lines))
    return found


def left(world: ReplicationWorld) -> list[str]:
    """What is in staging, on the store and on this machine."""
    store = bucket(world)
    here = world.settings.home / "working/lake/staged"
    return [*map(str, store.fs.find(store.staging)), *(str(path) for path in here.rglob("*"))]


def test_what_lands_is_computed_and_published(world: ReplicationWorld) -> None:
    land(world, 0, a=1)
    land(world, 1, a=10, b=20)
    assert world.step("01:00", "rows") == ["add on lake, 2013-01-01T00:00Z to 2013-01-01T01:00Z, attempt 1"]
    assert read(world, "totals", 1) == {"": [{"n": 31}], "_SUCCESS": []}
    assert world.step("01:00", "totals") == ["split on lake, 2013-01-01T00:00Z to 2013-01-01T01:00Z, attempt 1"]
    assert read(world, "parts", 1) == {"kind=a b": [{"n": 31}], "_SUCCESS": []}
    (said,) = world.published("lake", "totals", 1)
    assert (said.path, said.files) == ("lake/data/totals/2013-01-01-01", 1)
    assert left(world) == []


def test_the_versions_that_were_read_are_recorded(world: ReplicationWorld) -> None:
    with world.ledger.engine.connect() as connection:
        columns = select(CONSUMED.c.feed, CONSUMED.c.instance, CONSUMED.c.version)
        rows = connection.execute(columns.where(CONSUMED.c.process == "add")).all()
    landed = {(name, at): world.published("lake", name, at.hour)[-1].version for name, at, _ in rows}
    assert {(name, at): version for name, at, version in rows} == landed
    assert [at for _, at in landed] == [hour(0), hour(1)]


def test_late_data_is_computed_again(world: ReplicationWorld) -> None:
    land(world, 1, c=100)
    assert world.step("02:30", "rows", "lake")[0] == "add on lake, 2013-01-01T01:00Z, attempt 2"
    assert read(world, "totals", 1) == {"": [{"n": 131}], "_SUCCESS": []}
    assert left(world) == []


def test_a_snapshot_that_is_a_single_object_is_read_and_its_version_recorded(world: ReplicationWorld) -> None:
    bucket(world).fs.pipe_file("lake/dimensions/names.json", b'{"n": 7, "name": "seven"}')
    assert world.step("01:00", "names") == ["name on lake, 2013-01-01T00:00Z to 2013-01-01T01:00Z, attempt 1"]
    assert read(world, "named", 1) == {"": [{"n": 7}], "_SUCCESS": []}
    landed = {world.published("lake", "names", number)[-1].version for number in (0, 1)}
    with world.ledger.engine.connect() as connection:
        columns = select(CONSUMED.c.version).where(CONSUMED.c.process == "name")
        assert set(connection.execute(columns).scalars()) == landed
    assert len(landed) == 1
    assert left(world) == []


def test_its_next_refresh_is_late_for_the_newest_instance_only(world: ReplicationWorld) -> None:
    bucket(world).fs.pipe_file("lake/dimensions/names.json", b'{"n": 8, "name": "eight"}')
    assert world.step("01:50", "names") == ["name on lake, 2013-01-01T01:00Z, attempt 2"]
    assert read(world, "named", 0) == {"": [{"n": 7}], "_SUCCESS": []}
    assert read(world, "named", 1) == {"": [{"n": 8}], "_SUCCESS": []}


def test_credentials_are_nowhere(world: ReplicationWorld) -> None:
    with world.ledger.engine.connect() as connection:
        for table, column in (("event_logs", "event"), ("runs", "run_body")):
            rows = connection.execute(text(f"SELECT count(*), string_agg({column}, '') FROM {table}")).one()
            assert rows[0] > 0
            assert KEY not in rows[1] and SECRET not in rows[1]
