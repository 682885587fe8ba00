"""Instances of a feed are delivered to MariaDB, SQLite and an HTTP service by runs of Dagster, with Spark."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import dagster as dg
import pytest

from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import WriteRequest
from falcon_assets.features.datasources.types.sqlite import SqliteDatasource
from falcon_assets.features.openlineage.operations import ExportLineage
from falcon_assets.operations.installation import Installation
from tests.builders import cluster_yaml
from tests.builders import datasource_yaml as named_datasource
from tests.features.datasources.http_service import HttpService, http_service
from tests.features.transfers.shop import export, land, orders_yaml
from tests.mariadb_server import MariaDb
from tests.world import MakeWorld, World

TABLE = "CREATE TABLE orders (id bigint, name varchar(200), amount decimal(12,2), hour datetime)"
ROWS = [{"id": number, "name": f"n{number}" if number % 3 else None, "amount": number / 4} for number in range(500)]
TYPED = [(row["id"], row["name"], row["amount"]) for row in ROWS]


@pytest.fixture(scope="module")
def service() -> Iterator[HttpService]:
    with http_service() as service:
        yield service


@pytest.fixture(scope="module")
def world(make_world: MakeWorld, mariadb: MariaDb, service: HttpService) -> World:
    with mariadb.cursor() as cursor:
        cursor.execute("CREATE DATABASE exports CHARACTER SET utf8mb4")
    with mariadb.cursor("exports") as cursor:
        cursor.execute(TABLE)
    write = {"endpoint": f"mysql://127.0.0.1:{mariadb.port}/exports", "credential": {"user": "root"}}
    declared = [
        named_datasource("maria", type="mysql", interfaces={"write": write}),
        named_datasource(
            "files",
            type="sqlite",
            interfaces={"write": {"endpoint": "sqlite:shop.db"}},
            throttle={"connections": 4, "rows_per_second": 50_000},
        ),
        named_datasource(
            "api",
            type="http",
            interfaces={"write": {"endpoint": service.endpoint}},
            driver={"batch_rows": "40"},
            throttle={"connections": 2},
        ),
    ]
    retry = {"policy": "periodic", "delay": "minutes(1)"}
    exports = [export("orders", to, partition="hour", retry=retry) for to in ("maria", "files")]
    exports.append(export("v1/orders", "api", partition="hour", retry=retry))
    orders = orders_yaml(*exports, late_arrival={"cut_off": "hours(12)"})
    made: World = make_world({"a.yaml": cluster_yaml() + "".join(declared) + orders})
    with closing(sqlite3.connect(made.settings.home / "shop.db")) as connection, connection:
        connection.execute(TABLE)
    return made


def deliver(world: World, time: str, to: str) -> list[dg.ExecuteInProcessResult]:
    exports = [one for one in world.store.exports if one.datasource == to]
    return [result for _, result in world.play(time, exports)]


def state(world: World, to: str, hour: int) -> tuple[str, int, str]:
    row = world.rows(f"orders to {to}")[hour]
    return row["state"], row["attempt"], row["reason"]


def of_maria(mariadb: MariaDb) -> list[tuple[Any, ...]]:
    with mariadb.cursor("exports") as cursor:
        cursor.execute("SELECT id, name, amount + 0e0, hour FROM orders ORDER BY hour, id")
        return [(*row[:3], row[3].hour) for row in cursor.fetchall()]


def of_sqlite(world: World) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(world.settings.home / "shop.db")) as connection:
        asked = "SELECT id, name, amount, substr(hour, 12, 2) FROM orders ORDER BY hour, id"
        return [(*row[:3], int(row[3])) for row in connection.execute(asked)]


def of_service(service: HttpService) -> list[tuple[Any, ...]]:
    rows = [(row["id"], row["name"], row["amount"], row["hour"]) for row in service.rows]
    return sorted((id_, name, amount, int(hour[11:13])) for id_, name, amount, hour in rows)


def test_instances_are_in_the_databases(world: World, mariadb: MariaDb, monkeypatch: pytest.MonkeyPatch) -> None:
    shares, open_writing = [], SqliteDatasource.open_writing

    def opened(self: SqliteDatasource, access: Access, request: WriteRequest) -> Any:
        shares.append(request.rows_per_second)
        return open_writing(self, access, request)

    monkeypatch.setattr(SqliteDatasource, "open_writing", opened)
    land(world, 0, ROWS)
    for to in ("maria", "files"):
        assert [run.success for run in deliver(world, "00:10", to)] == [True]
    assert of_maria(mariadb) == [(*row, 0) for row in TYPED]
    assert of_sqlite(world) == [(*row, 0) for row in TYPED]
    assert shares == [50_000]  # all of it: one task loads a file


def test_late_data_is_delivered_again(world: World, mariadb: MariaDb) -> None:
    land(world, 0, ROWS[:100])
    for to in ("maria", "files"):
        assert [run.success for run in deliver(world, "04:00", to)] == [True]
    assert of_maria(mariadb) == of_sqlite(world) == [(*row, 0) for row in TYPED[:100]]
    with mariadb.cursor("exports") as cursor:
        cursor.execute("SELECT count(DISTINCT execution), sum(`rows`) FROM falcon_deliveries")
        assert [*map(int, cursor.fetchone())] == [2, 600]


def test_a_service_has_each_batch_once_although_an_export_failed_in_the_middle(
    world: World, service: HttpService
) -> None:
    deliver(world, "04:10", "api")
    assert of_service(service) == [(*row, 0) for row in TYPED[:100]]
    service.batches.clear()
    service.sent.clear()
    land(world, 5, ROWS)
    service.takes = lambda rows: 409 if len(service.batches) >= 6 else None
    deliver(world, "05:10", "api")
    assert state(world, "api", 5)[:2] == ("FAILED", 1)
    assert "it answers 409 to batch" in state(world, "api", 5)[2]
    sent, there = {**service.sent}, {*service.batches}
    assert len(there) == 6
    service.takes = lambda rows: None
    deliver(world, "05:12", "api")
    assert state(world, "api", 5) == ("SUCCEEDED", 2, "")
    assert there < {*service.batches} and {*sent} <= {*service.batches}
    assert of_service(service) == [(*row, 5) for row in TYPED]
    assert max(len(rows) for rows in service.batches.values()) <= 40


def test_lineage_of_other_systems_has_the_targets(world: World, mariadb: MariaDb, service: HttpService) -> None:
    with ExitStack() as opened:
        installation = Installation(world.at("06:00"), opened)
        events = [*ExportLineage(names=("orders to maria", "orders to api"), openlineage=True).run(installation)]
    ended = [one for one in events if one["eventType"] == "COMPLETE"]
    outputs = {(one["namespace"], one["name"]) for event in ended for one in event["outputs"]}
    assert outputs == {
        (f"mysql://127.0.0.1:{mariadb.port}", "exports.orders"),
        (f"http://127.0.0.1:{service.port}", "api/v1/orders"),
    }
    counts = [one["outputFacets"]["outputStatistics"]["rowCount"] for event in ended for one in event["outputs"]]
    assert sorted(counts) == [100, 100, 500]
    assert all(one["inputs"] for one in ended)
