"""Replication of tables between two registries, by real runs: with late changes, and read on the other side."""

from __future__ import annotations

import json

import pytest

from tests.builders import cluster_yaml
from tests.orchestration.replication_world import ReplicationWorld
from tests.orchestration.runs.test_tables import files_of
from tests.registries import Tables, iceberg
from tests.world import MakeWorld

SPAN = "validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T08:00Z}"
FEEDS = f"""---
kind: feed
name: moved
frequency: hours(1)
late_arrival: {{cut_off: hours(6)}}
table: {{uri: "catalog:default:moved#ds=${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}"}}
clusters: [{{name: hive, type: source, {SPAN}}}, {{name: iceberg, type: target, {SPAN}}}]
schedule: true
---
kind: feed
name: report
frequency: hours(1)
format: json
locations: {{data: "/report/${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}"}}
clusters: [{{name: iceberg, {SPAN}}}]
schedule: true
---
kind: process
name: tell
clusters: [{{name: iceberg, {SPAN}}}]
frequency: hours(1)
inputs: [{{name: rows, feed: moved, start: "now(0,0)", end: "now(0,0)"}}]
outputs: [{{name: out, feed: report, instance: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: tell.sql}}
schedule: true
"""


@pytest.fixture(scope="module")
def world(database: str, hive: str, make_world: MakeWorld) -> ReplicationWorld:
    clusters = ""
    for name, endpoint in {"hive": hive, "iceberg": iceberg(database)}.items():
        interfaces = {"write": {"endpoint": f"data/{name}"}, "execute": {"endpoint": "local[2]"}}
        clusters += cluster_yaml(name, interfaces={**interfaces, "registry": {"endpoint": endpoint}})
    sql = "SELECT sum(flight) AS n, min(ds) AS ds FROM rows"
    return make_world({"all.yaml": clusters + FEEDS, "tell.sql": sql}, ReplicationWorld)


def tables(world: ReplicationWorld, cluster: str) -> Tables:
    registry = world.store.cluster(cluster).interfaces.registry
    assert registry
    found = Tables(registry.endpoint, world.settings.home / cluster, ("ds",))
    found.name = "moved"
    return found


@pytest.mark.soak
def test_a_partition_comes_and_comes_again_when_it_changes(world: ReplicationWorld) -> None:
    source, target = tables(world, "hive"), tables(world, "iceberg")
    source.make()
    there = source.land(("2013-01-01-01",), 1, 2)
    assert world.step("01:00", "moved", "iceberg") == [
        "moved from hive on iceberg, 2013-01-01T01:00Z, attempt 1",
        "tell on iceberg, 2013-01-01T01:00Z, attempt 1",
    ]
    first = target.there("2013-01-01-01")
    assert first is not None and len(files_of(first)) == 1
    (copied,) = world.published("iceberg", "moved", 1)
    assert (copied.version, copied.path) == (first.version, "catalog:default:moved#ds=2013-01-01-01")
    assert copied.source_versions == {"hive": there.version}
    changed = source.land(("2013-01-01-01",), 1, 2, 4)
    assert world.step("01:40", "moved", "iceberg") == []
    assert world.step("04:00", "moved", "iceberg") == ["moved from hive on iceberg, 2013-01-01T01:00Z, attempt 2"]
    *_, late = world.published("iceberg", "moved", 1)
    assert late.source_versions == {"hive": changed.version}
    assert [one.after for one in late.late] == [changed.version]
    assert all(file.exists() for file in files_of(first)), "somebody may be reading them"
    folder = world.settings.home / "data/iceberg/report/2013-01-01-01"
    assert [json.loads(part.read_text()) for part in folder.glob("part-*")] == [{"n": 3, "ds": "2013-01-01-01"}]
