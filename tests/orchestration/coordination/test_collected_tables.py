"""What collectors record of tables."""

from __future__ import annotations

import dagster as dg

from falcon_assets.features.landing.collector import Collection, Collector
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.settings import Settings
from tests.records import read_record
from tests.registries import Tables, iceberg
from tests.world import MakeWorld

ENTITIES = """
kind: cluster
name: primary
interfaces:
  write: {{endpoint: data/primary}}
  execute: {{endpoint: "local[1]"}}
  registry: {{endpoint: "{endpoint}"}}
---
kind: feed
name: flights
frequency: hours(1)
late_arrival: {{cut_off: hours(2)}}
table: {{uri: "catalog:default:{table}#ds=${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}};region=*"}}
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}}}}]
---
kind: feed
name: lost
frequency: hours(1)
table: {{uri: "catalog:default:lost#hh=${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}"}}
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}}}}]
"""


def test_partitions_land_and_change(
    settings: Settings, instance: dg.DagsterInstance, make_world: MakeWorld, database: str
) -> None:
    endpoint = iceberg(database)
    tables = Tables(endpoint, settings.home)
    world = make_world({"all.yaml": ENTITIES.format(endpoint=endpoint, table=tables.name)})

    def collect(time: str) -> Collection:
        return Collector(world.store, world.store.cluster("primary"), world.at(time)).collect(world.ledger, 60)

    def landed() -> list[FeedInstanceAvailable]:
        key = dg.AssetKey(["primary", "flights"])
        records = instance.fetch_materializations(key, limit=100, ascending=True).records
        return [read_record(FeedInstanceAvailable, one.asset_materialization) for one in records]

    assert collect("00:30") == Collection(0, 0, {})  # there are no tables
    tables.make()
    tables.land(("2013-01-01-00", "US"), 1)
    tables.land(("2013-01-01-01", "US"), 1)
    assert collect("00:40").recorded == 1
    (first,) = landed()
    assert first.path == f"catalog:default:{tables.name}#ds=2013-01-01-00;region=*"
    assert first.files == 1
    assert collect("01:30").recorded == 1
    tables.land(("2013-01-01-00", "EU"), 2)
    assert collect("01:40").recorded == 1  # late data
    assert [one.instance.hour for one in landed()] == [0, 1, 0]
    assert landed()[2].version != first.version and landed()[2].files == 2
    assert collect("01:50") == Collection(0, 0, {})


def test_a_registry_that_does_not_answer_is_told(make_world: MakeWorld) -> None:
    gone = "iceberg+postgresql://nobody@127.0.0.1:1/none"
    world = make_world({"all.yaml": ENTITIES.format(endpoint=gone, table="flights")})
    collection = Collector(world.store, world.store.cluster("primary"), world.at("03:00")).collect(world.ledger, 60)
    gone = "iceberg+postgresql://127.0.0.1:1/none"
    why = f"cluster 'primary': {gone} does not answer, asked to look at table default.flights"
    why += ": OperationalError: Connection refused"
    assert why in collection.problems.values()
    assert collection.recorded == 0
