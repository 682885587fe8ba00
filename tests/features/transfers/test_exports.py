"""Instances of a feed are delivered to tables of PostgreSQL by runs of Dagster, with Spark."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import dagster as dg
import psycopg2
import pytest

from falcon_assets.features.datasources.types.postgresql.writing import PostgresqlWriting
from falcon_assets.planning.transfers import ExportWorkload
from tests.builders import cluster_yaml
from tests.features.transfers.shop import Shop, datasource_yaml, export, land, orders_yaml
from tests.world import MakeWorld, World

A, B, C = ({"id": number, "name": name, "amount": number} for number, name in enumerate("abc", 1))


@pytest.fixture(scope="module")
def world(make_world: MakeWorld, database: str) -> World:
    inserted = export("shop.orders", partition="hour", retry={"policy": "periodic", "delay": "minutes(1)"})
    newest = export("shop.newest", "mirror", load="replace", fields={"exclude": ["amount"]})
    datasources = datasource_yaml(database) + datasource_yaml(database, "mirror")
    orders = orders_yaml(inserted, newest, late_arrival={"cut_off": "hours(12)"})
    return make_world({"a.yaml": cluster_yaml() + datasources + orders})


@pytest.fixture(scope="module")
def shop(database: str) -> Shop:
    opened = Shop(database, "shop")
    opened.fresh(
        "CREATE TABLE orders (id bigint UNIQUE, name text, amount numeric(12,2), hour timestamptz NOT NULL)",
        "CREATE TABLE newest (id bigint, name text)",
    )
    return opened


def to(world: World, datasource: str) -> ExportWorkload:
    """The export to that one."""
    (found,) = (one for one in world.store.exports if one.datasource == datasource)
    return found


def deliver(world: World, time: str, datasource: str = "shop") -> list[dg.ExecuteInProcessResult]:
    """All runs that there are to do at that time."""
    return [result for _, result in world.play(time, [to(world, datasource)])]


def delivered(shop: Shop) -> list[tuple[Any, ...]]:
    return shop.ask("SELECT id, name, amount, extract(hour FROM hour AT TIME ZONE 'UTC')::int FROM orders ORDER BY id")


def states(world: World, datasource: str = "shop") -> dict[int, tuple[str, int, str]]:
    """State, attempt and reason of the instances, by their hour."""
    rows = world.rows(to(world, datasource).name)
    return {hour: (row["state"], row["attempt"], row["reason"]) for hour, row in rows.items()}


def test_an_instance_is_delivered(world: World, shop: Shop) -> None:
    land(world, 0, [A, {"id": 2, "name": None, "amount": None}, {"id": 3, "name": "", "amount": 0.1}])
    (run,) = deliver(world, "00:30")
    assert run.success
    rows = [(1, "a", Decimal("1.00"), 0), (2, None, None, 0), (3, "", Decimal("0.10"), 0)]
    assert delivered(shop) == rows
    assert (shop.deliveries, shop.staging) == ([(0, 3)], [])
    assert states(world) == {0: ("SUCCEEDED", 1, "")}


def test_late_data_is_delivered_again_in_place_of_what_was(world: World, shop: Shop) -> None:
    land(world, 0, [A, B])
    assert deliver(world, "00:40") == []  # checked after three hours
    (run,) = deliver(world, "04:00")
    assert run.success
    assert [row[:2] for row in delivered(shop)] == [(1, "a"), (2, "b")]
    assert shop.deliveries == [(0, 3), (0, 2)]


def test_what_does_not_fit_fails_with_what_to_do_and_is_tried_again(world: World, shop: Shop) -> None:
    shop.ask("ALTER TABLE orders ALTER amount TYPE numeric(9,2)")
    land(world, 4, [C])
    deliver(world, "04:10")
    state, attempt, said = states(world)[4]
    assert (state, attempt) == ("FAILED", 1)
    assert "amount is decimal(12,2) in the feed and numeric(9,2) in the table" in said
    shop.ask("ALTER TABLE orders ALTER amount TYPE numeric(12,2)")
    deliver(world, "04:12")
    assert states(world)[4] == ("SUCCEEDED", 2, "")
    assert shop.deliveries[-1] == (4, 1)


def test_a_value_that_is_refused_fails_its_instance_without_a_trace(world: World, shop: Shop) -> None:
    land(world, 5, [{"id": 50, "name": "a\0b", "amount": 1}])
    deliver(world, "05:10")
    assert states(world)[5][::2] == (
        "FAILED",
        "datasource 'shop': column name: invalid byte sequence for encoding \"UTF8\": 0x00",
    )
    assert shop.staging == []
    land(world, 5, [{"id": 50, "name": "ab", "amount": 1}])
    deliver(world, "05:20")
    assert states(world)[5][:2] == ("SUCCEEDED", 2)


def test_what_was_committed_before_its_run_died_is_not_written_again(
    world: World, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    land(world, 6, [{"id": 60, "name": "x", "amount": 1}])
    committed = PostgresqlWriting.commit

    def dying(self: PostgresqlWriting, *given: Any) -> int:
        committed(self, *given)
        raise psycopg2.OperationalError("server closed the connection")

    with monkeypatch.context() as patch:
        patch.setattr(PostgresqlWriting, "commit", dying)
        deliver(world, "06:10")
    assert states(world)[6][:2] == ("FAILED", 1)
    assert shop.deliveries[-1] == (6, 1)
    before = shop.ask("SELECT xmin::text FROM orders WHERE id = 60")
    deliver(world, "06:20")
    assert states(world)[6] == ("SUCCEEDED", 2, "")
    assert shop.ask("SELECT xmin::text FROM orders WHERE id = 60") == before
    assert shop.deliveries.count((6, 1)) == 1


def test_an_empty_instance_is_delivered(world: World, shop: Shop) -> None:
    land(world, 7, [])
    (run,) = deliver(world, "07:10")
    assert run.success
    assert shop.deliveries[-1] == (7, 0)


def test_replace_holds_the_newest_instance_and_an_earlier_one_is_passed(world: World, shop: Shop) -> None:
    deliver(world, "07:10", "mirror")
    assert shop.ask("SELECT * FROM newest") == []
    passed = "shop.newest of mirror has instance 2013-01-01T07:00Z already, which an earlier one does not replace"
    assert states(world, "mirror")[3] == ("SKIPPED", 0, f"{passed} (load: replace)")
    land(world, 8, [A])
    land(world, 9, [B])
    deliver(world, "09:10", "mirror")
    assert shop.ask("SELECT * FROM newest") == [(2, "b")]
    land(world, 8, [C])  # late
    deliver(world, "12:10", "mirror")
    assert shop.ask("SELECT * FROM newest") == [(2, "b")]
    assert states(world, "mirror")[8] == ("SUCCEEDED", 1, "")
