"""One flow from an HTTP service to a database, a cluster, a cluster on S3, and from there to another database."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import dagster as dg
import pyarrow.parquet as pq
import pytest
import s3fs
from sqlalchemy import select

from falcon_assets.features.flows.running import ExplainFlow, KillFlow, RunFlow
from falcon_assets.history.tables import NOTIFICATIONS
from falcon_assets.instances.outbox.recording import EventRecording
from tests.builders import SPARK, cluster_yaml
from tests.features.flows.shop_flow import DATABASES, asked, can, flow_yaml, status_of
from tests.features.transfers.shop import Shop
from tests.features.transfers.test_http_imports import ORDERS, Service, service
from tests.s3_server import KEY, SECRET, lake
from tests.world import MakeWorld, World

__all__ = ["service"]


@pytest.fixture(scope="module")
def world(service: Service, make_world: MakeWorld, lake_url: str, database: str) -> World:
    executors = [can(("http", "file"), ("file", "postgresql"))]
    two = {**lake(lake_url, "two"), "executors": [can(("file", "file"), ("file", "postgresql"))], "properties": SPARK}
    clusters = cluster_yaml("one", executors=executors) + cluster_yaml(**two)
    on_call = {"on": ["FAILED"], "to": [{"url": {"env": "ON_CALL"}}]}
    flow = flow_yaml(service.url, database, notification=on_call)
    found: World = make_world({"all.yaml": clusters + flow})
    EventRecording(found.store, found.at("00:00")).begin(found.ledger, datetime.now(UTC))
    return found


def test_all_places_have_the_data(world: World, database: str, lake_url: str) -> None:
    keys = world.step("00:10")
    assert sorted(key.partition(",")[0] for key in keys) == [
        "orders from one on two",
        "orders import on one",
        "orders to reports on one",
        "orders to store on one",
    ]
    wanted = [(one["id"], one["name"], Decimal(str(one["price"])).quantize(Decimal("0.01"))) for one in ORDERS]
    for name in DATABASES:
        assert Shop(database, name).ask("SELECT id, name, price FROM orders ORDER BY id") == wanted
    here = pq.read_table(world.settings.home / "data/one/flows/orders/2013-01-01/00").to_pylist()
    client = s3fs.S3FileSystem(key=KEY, secret=SECRET, client_kwargs={"endpoint_url": lake_url})
    there = pq.read_table("lake/data/lake/2013-01-01/00", filesystem=client).to_pylist()
    assert here == there
    assert [one["id"] for one in here] == [one["id"] for one in ORDERS]

    status = status_of(world, "00:10")
    assert (status["instance"], status["state"], status["message"]) == (
        "2013-01-01T00:00Z",
        "SUCCEEDED",
        "4 of 4 jobs are done",
    )
    jobs = {one["destination"]: one for one in status["jobs"]}
    assert {name: (one["kind"], one["rows"], one["executor"]) for name, one in jobs.items()} == {
        "cluster one": ("import", len(ORDERS), "spark"),
        "datasource store": ("export", len(ORDERS), "spark"),
        "cluster two": ("replication", None, "spark"),
        "datasource reports": ("export", len(ORDERS), "spark"),
    }
    assert all(one["started"] and one["ended"] for one in jobs.values())


def test_its_assets_are_shown_together(world: World) -> None:
    specs = [spec for spec in world.definitions("00:10").resolve_all_asset_specs() if "orders" in spec.key.path[-1]]
    found = {spec.key.to_user_string(): (spec.group_name, spec.tags.get("falcon/flow")) for spec in specs}
    names = ["one/orders", "two/orders", "one/orders__to__store", "one/orders__to__reports"]
    assert found == dict.fromkeys(names, ("sales", "orders"))
    assert dg.AssetKey(["one", "orders"]) in {dep.asset_key for spec in specs for dep in spec.deps}


def test_one_destination_that_fails_holds_back_no_other(world: World, database: str) -> None:
    Shop(database, "store").ask("ALTER TABLE orders RENAME TO gone")
    world.step("01:10")
    status = status_of(world, "01:10")
    assert status["state"] == "FAILED"
    assert status["message"] == "3 of 4 jobs are done; datasource store failed"
    assert status["destinations"] == {
        "cluster one": "SUCCEEDED",
        "cluster two": "SUCCEEDED",
        "datasource store": "FAILED",
        "datasource reports": "SUCCEEDED",
    }
    (failed,) = (one for one in status["jobs"] if one["state"] == "FAILED")
    assert "store.orders" in failed["message"]
    EventRecording(world.store, world.at("01:10")).record(world.ledger, datetime.now(UTC))
    with world.ledger.engine.connect() as connection:
        told = connection.execute(
            select(*(NOTIFICATIONS.c[key] for key in ("receiver", "event", "kind", "entity")))
        ).all()
    assert told == [("ON_CALL", "FAILED", "feed", "orders")]

    Shop(database, "store").ask("ALTER TABLE gone RENAME TO orders")
    again = asked(world, RunFlow(name="orders", instance="2013-01-01T01:00Z"), "01:20")
    assert sorted(one["entity"] for one in again["items"] if one["changed"]) == [
        "orders from one",
        "orders import",
        "orders to reports",
        "orders to store",
    ]
    world.step("01:20")
    status = status_of(world, "01:20", "2013-01-01T01:00Z")
    assert (status["state"], {one["attempt"] for one in status["jobs"]}) == ("SUCCEEDED", {2})
    assert Shop(database, "store").ask("SELECT count(*) FROM orders") == [(len(ORDERS),)]


def test_an_instance_that_is_killed_does_not_run(world: World) -> None:
    killed = asked(world, KillFlow(name="orders", instance="2013-01-01T02:00Z"), "02:10")
    assert sorted(one["entity"] for one in killed["items"] if one["changed"]) == [
        "orders from one",
        "orders import",
        "orders to reports",
        "orders to store",
    ]
    assert world.step("02:10") == []
    status = status_of(world, "02:10")
    assert (status["state"], {*status["destinations"].values()}) == ("FAILED", {"KILLED"})


def test_explained_are_the_hops_and_their_executors(world: World) -> None:
    explained = asked(world, ExplainFlow(name="orders"), "02:10")
    assert [(one["text"], one["cost"]) for one in explained["hops"]] == [
        ("cluster one, imported by executor spark of cluster one", 1000),
        ("datasource reports, exported by executor spark of cluster one", 1000),
        ("datasource store, exported by executor spark of cluster one", 1000),
        ("cluster two, copied by executor spark of cluster two", 1000),
    ]
    assert explained["better"] == []
