"""Tables of MariaDB and of a file of SQLite are imported by tasks of Spark, and read by plain pyarrow."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import dagster as dg
import pytest

from falcon_assets.settings import Settings
from tests.builders import datasource_yaml
from tests.features.transfers.worlds import ImportWorld, import_world, imported
from tests.mariadb_server import MariaDb

ROWS = 20_000
AT = datetime(2013, 1, 1, 0, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def world(
    settings: Settings,
    instance: dg.DagsterInstance,
    write_entities: Callable[[dict[str, str]], Path],
    mariadb: MariaDb,
    shop_password: None,
) -> ImportWorld:
    with mariadb.cursor() as cursor:
        cursor.execute("CREATE DATABASE imports CHARACTER SET utf8mb4")
        cursor.execute("CREATE USER shopper@'%' IDENTIFIED BY 'sesam-17-ü'")
        cursor.execute("GRANT SELECT ON imports.* TO shopper@'%'")
    with mariadb.cursor("imports") as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute("CREATE TABLE orders (id int unsigned PRIMARY KEY, total decimal(9,2), at timestamp NULL)")
        cursor.execute(f"INSERT INTO orders SELECT seq, seq / 4, '2013-01-01 00:30:00' FROM seq_1_to_{ROWS}")
    with closing(sqlite3.connect(settings.home / "shop.db")) as connection, connection:
        connection.execute("CREATE TABLE notes (id INTEGER, text TEXT)")
        connection.execute("INSERT INTO notes VALUES (1, 'ü'), (2, NULL)")
    endpoint = f"mysql://127.0.0.1:{mariadb.port}/imports"
    credential = {"user": "shopper", "password": {"env": "SHOP_PASSWORD"}}
    files = datasource_yaml("files", type="sqlite", interfaces={"readonly": {"endpoint": "sqlite:shop.db"}})
    return import_world(
        settings,
        instance,
        write_entities,
        str(settings.database_url),
        files,
        imported(hours=1),
        imported("notes", 1, source={"name": "files", "table": "notes"}),
        type="mysql",
        interfaces={"readonly": {"endpoint": endpoint, "credential": credential}},
    )


def test_a_table_of_mariadb_is_imported_in_parts(world: ImportWorld) -> None:
    assert [result.success for _, result in world.play("00:00", world.store.imports_of("orders"))] == [True]
    assert world.ids("orders", 0) == [*range(1, ROWS + 1)]
    row = world.table("orders", 0).slice(0, 1).to_pylist()[0]
    assert (row["total"], row["at"]) == (Decimal(row["id"]) / 4, AT)
    assert world.transfers()[0]["rows"] == ROWS
    assert len([*world.folder("primary", "orders", 0).glob("*.parquet")]) == 4


def test_a_table_of_sqlite_is_imported(world: ImportWorld) -> None:
    assert [result.success for _, result in world.play("00:00", world.store.imports_of("notes"))] == [True]
    assert world.table("notes", 0).to_pylist() == [{"id": 1, "text": "ü"}, {"id": 2, "text": None}]
