"""One flow from an HTTP service to a database, a cluster, a cluster on S3, and from there to another database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from decimal import Decimal
from typing import Any

import pyarrow.parquet as pq
import pytest
import s3fs
import yaml

from falcon_assets.features.flows.running import ExplainFlow, FlowStatusOf, KillFlow, RunFlow
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Operation, data_of
from tests.builders import SPARK, VALIDITY, cluster_yaml
from tests.features.transfers.shop import Shop, datasource_yaml
from tests.features.transfers.test_http_imports import DATASOURCE, ORDERS, Service, service
from tests.s3_server import KEY, SECRET, lake
from tests.world import MakeWorld, World

__all__ = ["service"]
TABLE = "CREATE TABLE orders (id bigint PRIMARY KEY, name text, price numeric(10,2))"
KEYED = {"load": {"upsert": {"key": ["id"]}}}
FLOW = {
    "kind": "flow",
    "name": "orders",
    "group": "sales",
    "schedule": "0 * * * *",
    "schema": "id bigint, name string, price decimal(10,2)",
    "source": {"datasource": "shop", "dataset": {"table": "orders"}},
    "destinations": [
        {"datasource": "store", "dataset": {"table": "store.orders"}, "export": {**KEYED, "retry": {"attempts": 0}}},
        {"cluster": "one"},
        {"cluster": "two", "dataset": {"path": "/lake/${YEAR}-${MONTH}-${DAY}/${HOUR}"}},
        {"datasource": "reports", "dataset": {"table": "reports.orders"}, "export": KEYED},
    ],
    "validity": VALIDITY,
}


def can(*pairs: tuple[str, str]) -> dict[str, Any]:
    return {"name": "spark", "endpoint": "local[2]", "capabilities": [[*pair] for pair in pairs]}


@pytest.fixture(scope="module")
def world(service: Service, make_world: MakeWorld, lake_url: str, database: str) -> Iterator[World]:
    one = cluster_yaml("one", executors=[can(("http", "file"), ("file", "postgresql"))])
    two = {**lake(lake_url, "two"), "executors": [can(("file", "file"), ("file", "postgresql"))], "properties": SPARK}
    files = [
        one,
        cluster_yaml(**two),
        DATASOURCE.format(url=service.url),
        datasource_yaml(database, "store"),
        datasource_yaml(database, "reports"),
        "---\n" + yaml.safe_dump(FLOW, sort_keys=False),
    ]
    for name in ("store", "reports"):
        Shop(database, name).fresh(TABLE)
    yield make_world({"all.yaml": "".join(files)})


def asked(world: World, operation: Operation, time: str) -> Any:
    """What the data of an operation is at that time."""
    made = Installation(world.at(time), ExitStack())
    there = {"instance": world.instance, "ledger": world.ledger, "tables": world.ledger.engine}
    made.__dict__.update(there, all_entities=world.store)
    return data_of(operation.run(made))


def status_of(world: World, time: str, instance: str | None = None) -> Any:
    return asked(world, FlowStatusOf(name="orders", instance=instance), time)


def test_all_places_have_the_data(world: World, database: str, lake_url: str) -> None:
    keys = world.step("00:10")
    assert sorted(key.partition(",")[0] for key in keys) == [
        "orders from one on two",
        "orders import on one",
        "orders to reports on one",
        "orders to store on one",
    ]
    wanted = [(one["id"], one["name"], Decimal(str(one["price"])).quantize(Decimal("0.01"))) for one in ORDERS]
    for name in ("store", "reports"):
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
