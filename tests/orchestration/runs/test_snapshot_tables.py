"""A process reads a whole Iceberg table that others replace in place."""

from __future__ import annotations

import json

import pytest

from tests.builders import cluster_yaml
from tests.orchestration.replication_world import ReplicationWorld
from tests.registries import Tables, iceberg
from tests.world import MakeWorld

pytestmark = pytest.mark.soak

ON = "clusters: [{name: lake, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T08:00Z}}]\n"
ENTITIES = (
    """---
kind: feed
name: carriers
snapshot: true
frequency: hours(1)
format: parquet
late_arrival: {cut_off: hours(6)}
table: {uri: "catalog:default:carriers"}
"""
    + ON
    + """---
kind: feed
name: sums
frequency: hours(1)
format: json
locations: {data: "/sums/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
"""
    + ON
    + """---
kind: process
name: sum
frequency: hours(1)
inputs: [{name: rows, feed: carriers, start: "now(0,0)", end: "now(0,0)"}]
outputs: [{name: out, feed: sums, instance: "now(0,0)"}]
workflow: {engine: spark-sql, path: sum.sql}
late_process: {policy: backoff, delay: minutes(1), inputs: [{input: rows}]}
schedule: true
"""
    + ON
)


@pytest.fixture(scope="module")
def world(database: str, make_world: MakeWorld) -> ReplicationWorld:
    interfaces = {"write": {"endpoint": "data/lake"}, "execute": {"endpoint": "local[2]"}}
    cluster = cluster_yaml("lake", interfaces={**interfaces, "registry": {"endpoint": iceberg(database)}})
    return make_world(
        {"all.yaml": cluster + ENTITIES, "sum.sql": "SELECT sum(flight) AS n FROM rows"}, ReplicationWorld
    )


@pytest.fixture(scope="module")
def carriers(world: ReplicationWorld) -> Tables:
    registry = world.store.cluster("lake").interfaces.registry
    assert registry
    table = Tables(registry.endpoint, world.settings.home / "lake", ())
    table.name = "carriers"
    table.make()
    return table


def sums(world: ReplicationWorld) -> dict[str, int]:
    """By hour."""
    parts = (world.settings.home / "data/lake/sums").glob("*/part-*.json")
    return {part.parent.name[-2:]: json.loads(part.read_text())["n"] for part in parts}


def test_it_is_read_when_it_was_refreshed(world: ReplicationWorld, carriers: Tables) -> None:
    assert world.step("01:30", "carriers") == []
    assert set(world.waiting("01:30", "carriers")["sum", "lake"]) == {0, 1}
    there = carriers.land((), 1, 2)
    assert world.step("01:30", "carriers") == ["sum on lake, 2013-01-01T00:00Z to 2013-01-01T01:00Z, attempt 1"]
    assert sums(world) == {"00": 3, "01": 3}
    (published,) = world.published("lake", "carriers", 1)
    assert (published.version, published.path) == (there.version, "catalog:default:carriers")


def test_another_refresh_is_late_data_of_its_newest_instance(world: ReplicationWorld, carriers: Tables) -> None:
    carriers.land((), 10)
    assert len(world.step("01:40", "carriers")) == 1
    assert sums(world) == {"00": 3, "01": 10}
    assert len(world.published("lake", "carriers", 0)) == 1
    assert len(world.step("02:10", "carriers")) == 1
    assert sums(world) == {"00": 3, "01": 10, "02": 10}
