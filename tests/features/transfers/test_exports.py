"""Instances of a feed are delivered to tables of PostgreSQL by runs of Dagster, with Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from typing import Any

import dagster as dg
import psycopg2
import pytest

from falcon_assets.errors import UnknownEntityError
from falcon_assets.features.datasources.types.postgresql.writing import PostgresqlWriting
from falcon_assets.features.lineage.asking import show_lineage
from falcon_assets.features.lineage.graph import dot
from falcon_assets.features.lineage.page import page_of
from falcon_assets.features.lineage.subject import VersionQuery
from falcon_assets.features.transfers.operations import ResendInstance
from falcon_assets.instances.operations.one_instance import InstanceDependencies, InstanceParams
from falcon_assets.instances.operations.questions import ListInstances
from falcon_assets.operations.audit import ListAudit
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.transfers import ExportWorkload
from tests.builders import cluster_yaml
from tests.features.transfers.shop import Shop, datasource_yaml, export, land, orders_yaml
from tests.hours import hour
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


@contextmanager
def installed(world: World, time: str) -> Iterator[Installation]:
    with ExitStack() as opened:
        yield Installation(world.at(time), opened)


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


def test_an_instance_is_sent_again_to_one_destination_on_request(world: World, shop: Shop) -> None:
    with installed(world, "07:20") as installation:
        result = ResendInstance(feed="orders", instance=hour(0), to="shop", reason="it never came").run(installation)
        assert (result.operation, [one.instance.entity for one in result.items]) == ("resend", ["orders to shop"])
        (entry,) = ListAudit(filters=(("operation", "instance resend"),)).run(installation).items
        assert (entry.reason, entry.first, entry.result) == ("it never came", hour(0), "done")
    (before,) = (note for note in result.notes if "was sent" in note)
    assert before.startswith(
        "before, orders 2013-01-01T00:00Z was sent to shop.orders of shop on 2013-01-01T04:00Z (rows: 2, execution "
    )
    sent = shop.deliveries
    deliver(world, "07:20")
    assert shop.deliveries == [*sent, (0, 2)]
    asked = "SELECT count(DISTINCT execution), count(DISTINCT version) FROM falcon_deliveries WHERE instance = %s"
    executions = shop.ask(f"{asked} AND target = 'orders'", hour(0))
    assert executions == [(3, 2)]
    assert [row[:2] for row in delivered(shop)][:2] == [(1, "a"), (2, "b")]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"feed": "orders", "to": "nobody"},
            "feed 'orders' is not exported to 'nobody'; it is to: mirror (from primary), ",
        ),
        ({"feed": "orders", "to": "shop", "cluster": "east"}, "feed 'orders' is not exported to 'shop' from east"),
        ({"feed": "ordres", "to": "shop"}, "'ordres' is no feed (did you mean 'orders'?)"),
    ],
)
def test_where_nothing_can_be_sent(world: World, given: dict[str, str], said: str) -> None:
    with installed(world, "07:20") as installation, pytest.raises(UnknownEntityError) as found:
        ResendInstance(instance=hour(0), **given).run(installation)  # type: ignore[arg-type]
    assert str(found.value).startswith(said)


def test_lineage_knows_what_was_sent_where_and_when(world: World, shop: Shop) -> None:
    with installed(world, "07:20") as installation:
        found = show_lineage(installation, VersionQuery("orders", hour(0)), down=True)
        executions = shop.ask(
            "SELECT execution FROM falcon_deliveries WHERE instance = %s AND version = %s ORDER BY number",
            hour(0),
            found.version.version,
        )
        assert [(one.dataset, one.datasource, one.rows, one.execution, one.process) for one in found.datasets] == [
            ("shop.orders", "shop", 2, execution, "orders to shop") for (execution,) in executions
        ]
        data = found.as_data()
        node = {"id": "dataset:shop/shop.orders", "kind": "dataset", "datasource": "shop", "name": "shop.orders"}
        assert node in data["nodes"]
        assert [one["to"] for one in data["edges"]] == [node["id"]] * 2
        assert {one["at"] for one in data["edges"]} == {"2013-01-01T04:00:00+00:00", "2013-01-01T07:20:00+00:00"}
        assert '"dataset:shop/shop.orders" [shape=folder]' in dot(
            found.graph, folders={one.id for one in found.datasets}
        )
        assert "dataset:shop/shop.orders" in page_of(found)


def test_commands_know_exports(world: World) -> None:
    with installed(world, "07:20") as installation:
        listed = (
            ListInstances(name="orders to shop", filters=(("kind", "export"), ("state", "SUCCEEDED")))
            .run(installation)
            .items
        )
        assert {one.entity for one in listed} == {"orders to shop"}
        assert {one.kind for one in listed} == {"export"}
        dependencies = InstanceDependencies(name="orders to shop", instance=hour(0)).run(installation)
        assert [(one["name"], one["feed"], one["available"]) for one in dependencies["inputs"]] == [
            ("source", "orders", True)
        ]
        params = InstanceParams(name="orders to shop", instance=hour(0)).run(installation)["params"]
        assert params["target.table"] == "shop.orders"


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
