"""Instances of a feed are delivered to tables of PostgreSQL."""

from __future__ import annotations

from decimal import Decimal

import dagster as dg
import pytest

from tests.builders import cluster_yaml
from tests.features.transfers.shop import Shop, datasource_yaml, export, land, orders_yaml
from tests.world import MakeWorld, World


@pytest.fixture(scope="module")
def world(make_world: MakeWorld, database: str) -> World:
    inserted = export("shop.orders", partition="hour")
    return make_world({"a.yaml": cluster_yaml() + datasource_yaml(database) + orders_yaml(inserted)})


@pytest.fixture
def shop(database: str) -> Shop:
    opened = Shop(database, "shop")
    opened.fresh("CREATE TABLE orders (id bigint, name text, amount numeric(12,2), hour timestamptz NOT NULL)")
    return opened


def deliver(world: World, time: str) -> list[dg.ExecuteInProcessResult]:
    return [result for _, result in world.play(time, list(world.store.exports))]


def test_an_instance_is_delivered(world: World, shop: Shop) -> None:
    land(world, 1, [{"id": 1, "name": "a", "amount": 1.5}, {"id": 2, "name": None, "amount": None}])
    (run,) = deliver(world, "01:30")
    assert run.success, run.get_step_failure_events()[0].step_failure_data
    rows = shop.ask("SELECT id, name, amount, hour FROM orders ORDER BY id")
    assert [row[:3] for row in rows] == [(1, "a", Decimal("1.50")), (2, None, None)]
    assert (shop.deliveries, shop.staging) == ([(1, 2)], [])
