"""The orders of a shop as a flow: from an HTTP service to two databases and two clusters."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import yaml

from falcon_assets.features.flows.running import FlowStatusOf
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Operation, data_of
from tests.builders import VALIDITY
from tests.features.transfers.shop import Shop, datasource_yaml
from tests.features.transfers.test_http_imports import DATASOURCE
from tests.world import World

TABLE = "CREATE TABLE orders (id bigint PRIMARY KEY, name text, price numeric(10,2))"
KEYED = {"load": {"upsert": {"key": ["id"]}}}
DATABASES = ("store", "reports")


def flow_yaml(service: str, database: str, **overrides: Any) -> str:
    """The flow and its datasources: the service at that URL, and two schemas of a database with empty tables."""
    for name in DATABASES:
        Shop(database, name).fresh(TABLE)
    to_store = {"table": "store.orders"}
    flow = {
        "kind": "flow",
        "name": "orders",
        "group": "sales",
        "schedule": "0 * * * *",
        "schema": "id bigint, name string, price decimal(10,2)",
        "source": {"datasource": "shop", "dataset": {"table": "orders"}},
        "destinations": [
            {"datasource": "store", "dataset": to_store, "export": {**KEYED, "retry": {"attempts": 0}}},
            {"cluster": "one"},
            {"cluster": "two", "dataset": {"path": "/lake/${YEAR}-${MONTH}-${DAY}/${HOUR}"}},
            {"datasource": "reports", "dataset": {"table": "reports.orders"}, "export": KEYED},
        ],
        "validity": VALIDITY,
    }
    datasources = [DATASOURCE.format(url=service), *(datasource_yaml(database, name) for name in DATABASES)]
    return "".join([*datasources, "---\n", yaml.safe_dump({**flow, **overrides}, sort_keys=False)])


def can(*pairs: tuple[str, str], name: str = "spark", endpoint: str = "local[2]") -> dict[str, Any]:
    """An executor with these capabilities."""
    return {"name": name, "endpoint": endpoint, "capabilities": [[*pair] for pair in pairs]}


def asked(world: World, operation: Operation, time: str) -> Any:
    """The data of an operation at that time."""
    made = Installation(world.at(time), ExitStack())
    there = {"instance": world.instance, "ledger": world.ledger, "tables": world.ledger.engine}
    made.__dict__.update(there, all_entities=world.store)
    return data_of(operation.run(made))


def status_of(world: World, time: str, instance: str | None = None) -> Any:
    """``falcon flow status orders`` at that time."""
    return asked(world, FlowStatusOf(name="orders", instance=instance), time)
