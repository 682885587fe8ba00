"""Passes of retention over tables of both kinds of catalog, with a real ledger."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import dagster as dg
import pyarrow.parquet as pq
import pytest
from sqlalchemy import select

from falcon_assets.features.landing.collector import Collector
from falcon_assets.features.retention import store as evictions
from falcon_assets.features.retention.passes import PassResult, RetentionPass
from falcon_assets.features.retention.plan import plan_retention
from falcon_assets.history.tables import EVICTIONS, FEED_INSTANCES
from falcon_assets.settings import Settings
from falcon_assets.storage.tables.iceberg import IcebergCatalog
from tests.builders import cluster_yaml
from tests.registries import HIVE_IN_SOAK, Tables, endpoint_of
from tests.world import MakeWorld

FEED = """---
kind: feed
name: landed
frequency: hours(1)
schedule: true
table: {uri: "catalog:default:TABLE#ds=${YEAR}-${MONTH}-${DAY}-${HOUR};region=*"}
clusters:
  - name: primary
    validity: {start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}
    retention: {limit: hours(2)}
"""


@pytest.mark.parametrize("kind", HIVE_IN_SOAK)
def test_old_partitions_go_and_are_recorded(
    kind: str,
    request: pytest.FixtureRequest,
    settings: Settings,
    make_world: MakeWorld,
) -> None:
    endpoint = endpoint_of(request, kind)
    tables = Tables(endpoint, settings.home / "data/primary/tables")
    interfaces = {"write": {"endpoint": "data/primary"}, "execute": {"endpoint": "local[1]"}}
    cluster = cluster_yaml(interfaces={**interfaces, "registry": {"endpoint": endpoint}})
    world = make_world({"all.yaml": cluster + FEED.replace("TABLE", tables.name)})
    primary = world.store.cluster("primary")
    tables.make()
    for hour in range(4):
        for region in ("DE", "US"):
            tables.land((f"2013-01-01-{hour:02}", region), hour)

    def record(events: Sequence[dg.AssetObservation]) -> None:
        for event in events:
            world.instance.report_runless_asset_event(event)

    def there() -> list[str]:
        return sorted(values[0][-2:] for values in tables.catalog.values("default", tables.name, {}))

    now = world.at("03:30")
    assert Collector(world.store, primary, now).collect(world.ledger, 60).problems == {}
    world.ledger.catch_up()
    with world.ledger.engine.connect() as connection:
        feeds = [world.store.feed("landed")]
        plans = list(plan_retention(connection, world.store, world.stores("primary"), feeds, now.now()))
    assert [one.action for plan in plans for one in plan.verdicts] == ["delete", "delete", "keep", "keep"]
    retention = RetentionPass(world.store, primary, [world.store.feed("landed")], now, 0)
    passed = retention.run(world.ledger, "run", record)
    assert (passed.instances, passed.problems, passed.bytes > 0) == (2, (), True)
    assert there() == ["02", "02", "03", "03"]
    world.ledger.catch_up()
    with world.ledger.engine.connect() as connection:
        states = [row.state for row in connection.execute(select(FEED_INSTANCES).order_by("instance"))]
        done = connection.execute(select(EVICTIONS)).all()
    assert states == ["EVICTED", "EVICTED", "AVAILABLE", "AVAILABLE"]
    assert [(row.files, row.done_at is not None) for row in done] == [(2, True), (2, True)]
    assert not retention.has_leftovers(world.ledger)
    assert retention.run(world.ledger, "again", record).instances == 0


@pytest.mark.parametrize("kind", HIVE_IN_SOAK)
def test_a_partition_is_archived_on_another_cluster(
    kind: str,
    request: pytest.FixtureRequest,
    settings: Settings,
    make_world: MakeWorld,
) -> None:
    endpoint = endpoint_of(request, kind)
    tables = Tables(endpoint, settings.home / "data/primary/tables", keys=("ds",))
    interfaces = {"write": {"endpoint": "data/primary"}, "execute": {"endpoint": "local[1]"}}
    clusters = cluster_yaml(interfaces={**interfaces, "registry": {"endpoint": endpoint}}) + cluster_yaml("cellar")
    place = "/old/${DAY}-${HOUR}-${MONTH}-${YEAR}"
    archive = f'limit: hours(2), action: archive, archive_cluster: cellar, archive_to: "{place}"'
    feed = FEED.replace("TABLE", tables.name).replace("name: landed", f"name: old-{kind}")
    world = make_world({"all.yaml": clusters + feed.replace(";region=*", "").replace("limit: hours(2)", archive)})
    tables.make()
    for hour in range(3):
        tables.land((f"2013-01-01-{hour:02}",), hour)
    primary, old = world.store.cluster("primary"), world.store.feed(f"old-{kind}")
    passed = RetentionPass(world.store, primary, [old], world.at("03:30"), 0).run(
        world.ledger, "run", lambda events: None
    )
    assert (passed.instances, passed.problems) == (2, ())
    assert tables.catalog.values("default", tables.name, {}) == [("2013-01-01-02",)]
    (file,) = (settings.home / "data/cellar/old/01-01-01-2013").iterdir()
    assert pq.read_table(file)["flight"].to_pylist() == [1]


@pytest.mark.parametrize("now_declared", ["nothing", "files"])
@pytest.mark.parametrize("is_dropped", [True, False])
def test_what_a_killed_pass_began_is_completed_without_its_feed(
    now_declared: str,
    is_dropped: bool,
    request: pytest.FixtureRequest,
    settings: Settings,
    make_world: MakeWorld,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was dropped is recorded; what was only decided on stays, as nothing says any more that it goes."""
    endpoint = endpoint_of(request, "iceberg")
    tables = Tables(endpoint, settings.home / "data/primary/tables", keys=("ds",))
    interfaces = {"write": {"endpoint": "data/primary"}, "execute": {"endpoint": "local[1]"}}
    cluster = cluster_yaml(interfaces={**interfaces, "registry": {"endpoint": endpoint}})
    name = f"gone-{now_declared}-{'dropped' if is_dropped else 'decided'}"
    feed = FEED.replace("TABLE", tables.name).replace("name: landed", f"name: {name}").replace(";region=*", "")
    world = make_world({"all.yaml": cluster + feed})
    tables.make()
    tables.land(("2013-01-01-00",), 0)
    events: list[dg.AssetObservation] = []

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    def passing(feeds: list[str], record: Callable[[Sequence[dg.AssetObservation]], None]) -> PassResult:
        primary = world.store.cluster("primary")
        retained = [world.store.feed(one) for one in feeds]
        return RetentionPass(world.store, primary, retained, world.at("03:30"), 0).run(world.ledger, "run", record)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        if not is_dropped:
            patch.setattr(IcebergCatalog, "drop", killed)
        passing([name], killed)
    locations = """availability_flag: null
locations: {data: "/landed/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
"""
    other = feed.replace(next(line for line in feed.splitlines() if line.startswith("table:")) + "\n", locations)
    other = other.replace("    retention: {limit: hours(2)}\n", "") if now_declared == "files" else ""
    world = make_world({"all.yaml": cluster + other})
    passed = passing([], events.extend)
    assert (passed.instances, passed.problems, len(events)) == (int(is_dropped), (), int(is_dropped))
    assert len(tables.catalog.values("default", tables.name, {})) == int(not is_dropped)
    with world.ledger.engine.connect() as connection:
        assert evictions.undone(connection, "primary", [name]) == []
