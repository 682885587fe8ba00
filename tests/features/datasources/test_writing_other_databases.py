"""Deliveries to MariaDB and to SQLite: what they write, once, and what they refuse; read by plain drivers."""

from __future__ import annotations

import pickle
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import LoadedPart, WriteRequest
from falcon_assets.model.datasource import DatasourceThrottle
from tests.features.datasources.deliveries import deliver, loaded, opened, request
from tests.mariadb_server import MariaDb

COLUMNS = [("id", "bigint"), ("name", "string"), ("amount", "decimal(12,2)")]
UPSERT = {"upsert": {"key": ["id"]}}


@dataclass(frozen=True)
class Database:
    """A database with the table ``orders``, asked by its plain driver.

    Attributes:
        staging: Names of what deliveries have left beside their targets.
    """

    access: Access
    ask: Callable[[str], list[tuple[Any, ...]]]
    staging: Callable[[], Sequence[str]]

    @property
    def orders(self) -> list[tuple[Any, ...]]:
        asked = "SELECT id, name, CAST(hour AS CHAR(13)) FROM orders ORDER BY id, hour"
        return [(id_, name, None if hour is None else int(hour[11:13])) for id_, name, hour in self.ask(asked)]

    @property
    def deliveries(self) -> list[tuple[int, int]]:
        rows = self.ask("SELECT CAST(instance AS CHAR(13)), `rows` FROM falcon_deliveries ORDER BY number")
        return [(int(hour[11:13]), rows) for hour, rows in rows]


def of_mariadb(server: MariaDb, _: Path) -> Database:
    def ask(statement: str) -> list[tuple[Any, ...]]:
        with server.cursor("deliveries") as cursor:
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute(statement)
            return list(cursor.fetchall())

    def staging() -> list[str]:
        return [name for (name,) in ask("SHOW TABLES") if name.startswith("falcon_staging")]

    with server.cursor() as cursor:
        cursor.execute("DROP DATABASE IF EXISTS deliveries")
        cursor.execute("CREATE DATABASE deliveries CHARACTER SET utf8mb4")
    ask("CREATE TABLE orders (id bigint UNIQUE, name varchar(200), amount decimal(12,2), hour datetime)")
    endpoint = f"mysql://127.0.0.1:{server.port}/deliveries"
    return Database(Access("shop", "mysql", endpoint, DatasourceThrottle(), "root"), ask, staging)


def of_sqlite(_: MariaDb, folder: Path) -> Database:
    file = folder / "shop [1].db"

    def ask(statement: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(file)) as connection, connection:
            return connection.execute(statement).fetchall()

    ask("CREATE TABLE orders (id INTEGER UNIQUE, name TEXT, amount DECIMAL(12,2), hour DATETIME)")
    access = Access("shop", "sqlite", "sqlite:shop [1].db", DatasourceThrottle(), home=folder)
    return Database(access, ask, lambda: [one.name for one in folder.iterdir() if one.name != file.name])


@pytest.fixture(params=[of_mariadb, of_sqlite], ids=["MariaDB", "SQLite"])
def shop(request: pytest.FixtureRequest, mariadb: MariaDb, tmp_path: Path) -> Iterator[Database]:
    yield request.param(mariadb, tmp_path)


def rows(*given: tuple[int | None, str | None]) -> pa.RecordBatch:
    """Orders; the amount of each is a hundredth of its number."""
    ids, names = [one for one, _ in given], [one for _, one in given]
    amounts = [None if one is None else Decimal(one) / 100 for one in ids]
    columns = [pa.array(ids, pa.int64()), pa.array(names, pa.string()), pa.array(amounts, pa.decimal128(12, 2))]
    return pa.RecordBatch.from_arrays(columns, ["id", "name", "amount"])


def asked(hour: int = 0, execution: str = "", **declared: Any) -> WriteRequest:
    """An hour of orders, with its time in ``hour`` unless another is declared."""
    return request(COLUMNS, hour, execution, **{"partition": "hour"} | declared)


def test_rows_are_there_with_their_delivery(shop: Database) -> None:
    def last() -> None:
        assert shop.orders == []

    assert deliver(shop.access, asked(3), rows((1, "a"), (2, ""), (3, None)), last=last) == 3
    assert shop.orders == [(1, "a", 3), (2, "", 3), (3, None, 3)]
    assert [float(amount) for (amount,) in shop.ask("SELECT amount FROM orders ORDER BY id")] == [0.01, 0.02, 0.03]
    name = "execution of 2013-01-01 03:00:00+00:00"
    told = shop.ask("SELECT execution, target, feed, cluster, version FROM falcon_deliveries")
    assert told == [(name, "orders", "orders", "primary", f"version of {name}")]
    assert (shop.deliveries, shop.staging()) == ([(3, 3)], [])


def test_an_execution_is_delivered_once(shop: Database) -> None:
    assert deliver(shop.access, asked(), rows((1, "a"))) == 1
    assert deliver(shop.access, asked(), rows((1, "changed"), (2, "b"))) == 1
    assert (shop.orders, shop.deliveries) == ([(1, "a", 0)], [(0, 1)])


def test_two_attempts_at_one_execution_are_one_delivery(shop: Database) -> None:
    with opened(shop.access, asked()) as first, opened(shop.access, asked()) as second:
        parts = [loaded(one, 0, rows((1, "a"), (2, "b"))) for one in (first, second)]
        assert second.commit([parts[1]], lambda: None) == 2
        assert first.commit([parts[0]], lambda: None) == 2
    assert (shop.orders, shop.deliveries, shop.staging()) == ([(1, "a", 0), (2, "b", 0)], [(0, 2)], [])


def test_an_attempt_that_was_overtaken_writes_nothing(shop: Database) -> None:
    with opened(shop.access, asked(execution="old")) as old:
        part = loaded(old, 0, rows((1, "old")))
        deliver(shop.access, asked(execution="new"), rows((1, "new")))
        with pytest.raises(DatasourceError, match="orders 2013-01-01T00:00Z was delivered by another attempt"):
            old.commit([part], lambda: None)
    assert (shop.orders, shop.deliveries, shop.staging()) == ([(1, "new", 0)], [(0, 1)], [])


def test_what_must_not_become_visible_at_last_does_not(shop: Database) -> None:
    def last() -> None:
        raise DatasourceError("no")

    with pytest.raises(DatasourceError, match="no"):
        deliver(shop.access, asked(), rows((1, "a")), last=last)
    assert (shop.orders, shop.deliveries, shop.staging()) == ([], [], [])


def test_insert_replaces_what_the_instance_wrote(shop: Database) -> None:
    deliver(shop.access, asked(1), rows((1, "a"), (2, "b")))
    deliver(shop.access, asked(2), rows((3, "c")))
    deliver(shop.access, asked(1, "again"), rows((2, "late")))
    assert shop.orders == [(2, "late", 1), (3, "c", 2)]
    assert deliver(shop.access, asked(2, "empty")) == 0
    assert shop.orders == [(2, "late", 1)]


def test_replace_partition_replaces_the_period_whoever_wrote_it(shop: Database) -> None:
    shop.ask("INSERT INTO orders VALUES (7, 'by hand', 0, '2013-01-01 01:59:59'), (8, '', 0, '2013-01-01 02:00:00')")
    deliver(shop.access, asked(1, load="replace_partition"), rows((1, "a")))
    assert shop.orders == [(1, "a", 1), (8, "", 2)]


def test_upsert_replaces_rows_of_the_same_key(shop: Database) -> None:
    shop.ask("INSERT INTO orders VALUES (1, 'by hand', 5, NULL), (9, 'other', 0, NULL)")
    deliver(shop.access, asked(1, load=UPSERT, partition=None), rows((1, "a"), (2, "b")))
    deliver(shop.access, asked(2, load=UPSERT, partition=None), rows((2, "c")))
    assert shop.orders == [(1, "a", None), (2, "c", None), (9, "other", None)]


def test_upsert_leaves_what_a_newer_instance_wrote_where_it_is_told(shop: Database) -> None:
    deliver(shop.access, asked(2, load=UPSERT), rows((1, "new")))
    deliver(shop.access, asked(1, load=UPSERT), rows((1, "old"), (2, "b")))
    assert shop.orders == [(1, "new", 2), (2, "b", 1)]


def test_upsert_of_nothing_but_keys(shop: Database) -> None:
    only = request([("id", "bigint")], load=UPSERT)
    deliver(shop.access, only, rows((1, None), (2, None)).select(["id"]))
    assert shop.ask("SELECT id FROM orders ORDER BY 1") == [(1,), (2,)]


def test_a_key_has_one_row_in_an_instance(shop: Database) -> None:
    with pytest.raises(DatasourceError) as found:
        deliver(shop.access, asked(load=UPSERT), rows((1, "a"), (2, "b"), (1, "c"), (3, ""), (2, "d")))
    assert str(found.value) == (
        "orders 2013-01-01T00:00Z has several rows for 2 values by the key id: a key has one row in an instance"
    )
    with pytest.raises(DatasourceError, match="orders 2013-01-01T00:00Z has 1 row without id, which is in the key"):
        deliver(shop.access, asked(load=UPSERT), rows((None, "a"), (2, "b")))
    assert (shop.orders, shop.staging()) == ([], [])


def test_replace_keeps_the_newest_instance(shop: Database) -> None:
    how = {"load": "replace", "partition": None}
    deliver(shop.access, asked(1, **how), rows((1, "a")))
    deliver(shop.access, asked(2, **how), rows((2, "b")))
    with pytest.raises(DatasourceError) as found:
        deliver(shop.access, asked(1, "again", **how), rows((1, "a")))
    assert str(found.value) == (
        "orders has 2013-01-01T02:00Z, which is newer than orders 2013-01-01T01:00Z, and load: replace keeps the "
        "newest instance: nothing is written"
    )
    assert shop.orders == [(2, "b", None)]


def test_a_missing_table_comes_with_the_statement_that_creates_it(shop: Database) -> None:
    wanted = asked(table="sales", load=UPSERT)
    with pytest.raises(DatasourceError) as found:
        deliver(shop.access, wanted, rows((1, "a")))
    said, statement = str(found.value).split(". This creates it: ")
    assert said == "datasource 'shop' has no table 'sales'; there is: orders"
    shop.ask(statement)
    assert deliver(shop.access, wanted, rows((1, "a"))) == 1
    ((number, name, amount),) = shop.ask("SELECT id, name, amount FROM sales")
    assert (number, name, Decimal(amount)) == (1, "a", Decimal("0.01"))


def test_an_attempt_at_a_part_that_was_given_up_is_not_delivered(shop: Database) -> None:
    with opened(shop.access, asked()) as writing:
        loaded(writing, 0, rows((1, "lost"), (2, "lost")), attempt=1)
        number = pickle.loads(pickle.dumps(writing.part)).load(0, 2, iter([rows((1, "a"))]))
        writing.commit([LoadedPart(0, 2, number)], lambda: None)
    assert (shop.orders, shop.staging()) == ([(1, "a", 0)], [])


def test_what_a_dead_delivery_left_goes_with_the_next_one_and_that_of_a_living_one_stays(shop: Database) -> None:
    with opened(shop.access, asked(1)) as alive:
        part = loaded(alive, 0, rows((1, "a")))
        there = {*shop.staging()}
        left = {one.replace(alive.key, "0123456789abcde") for one in there}  # type: ignore[attr-defined]
        for name in left:
            if shop.access.type == "sqlite":
                (shop.access.home / name).touch()
            else:
                shop.ask(f"CREATE TABLE {name} (id int)")
        assert {*shop.staging()} == there | left
        deliver(shop.access, asked(3), rows((3, "b")))
        assert {*shop.staging()} == there
        assert alive.commit([part], lambda: None) == 1
    assert (shop.orders, shop.staging()) == ([(1, "a", 1), (3, "b", 3)], [])


def test_a_part_of_which_something_is_lost_is_noticed(shop: Database) -> None:
    with opened(shop.access, asked()) as writing:
        part = loaded(writing, 0, rows((1, "a"), (2, "b")))
        with pytest.raises(DatasourceError, match="2 of 3 loaded rows are there: nothing is written"):
            writing.commit([part._replace(rows=3)], lambda: None)
    assert shop.deliveries == []


def test_names_may_be_any(shop: Database) -> None:
    shop.ask('CREATE TABLE `50% off {x} ?` (`a "``b` bigint, `%s` varchar(9), `T` date)')
    columns = [('a "`b', "bigint"), ("%s", "string")]
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array(["x"])], [name for name, _ in columns])
    deliver(shop.access, request(columns, table="50% off {x} ?", partition="T"), batch)
    assert [(a, str(day)) for a, day in shop.ask('SELECT `a "``b`, T FROM `50% off {x} ?`')] == [(1, "2013-01-01")]


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        (
            {"load": {"upsert": {"key": ["name"]}}},
            "load: upsert needs a unique index on name, as the .*: CREATE UNIQUE",
        ),
        ({"load": {"upsert": {"key": ["code"]}}}, "code of the key is not exported$"),
        ({"partition": None}, "load: insert needs partition: the column of the table that has the time"),
        ({"partition": "name"}, "name is filled by the export, with the time of the instance: rename it in the feed"),
        ({"partition": "at"}, "at, which the export fills, is not in the table: ALTER TABLE .* ADD COLUMN"),
    ],
)
def test_declared_ways_that_the_table_does_not_have(shop: Database, declared: Any, said: str) -> None:
    with pytest.raises(DatasourceError, match=said):
        deliver(shop.access, asked(**declared), rows((1, "a")))
    assert shop.staging() == []


def test_rows_that_the_table_refuses_are_none_of_the_message(shop: Database) -> None:
    deliver(shop.access, asked(), rows((1, "a")))
    with pytest.raises(DatasourceError, match=r": load: \{upsert: .*\} replaces rows with the same key$") as found:
        deliver(shop.access, asked(1), rows((1, "b")))
    assert "'1'" not in str(found.value)
    assert (shop.orders, shop.staging()) == ([(1, "a", 0)], [])


def test_a_table_without_transactions_is_refused(mariadb: MariaDb, tmp_path: Path) -> None:
    shop = of_mariadb(mariadb, tmp_path)
    shop.ask("ALTER TABLE orders ENGINE = MyISAM")
    with pytest.raises(DatasourceError, match="orders has no transactions, which exports need: ALTER TABLE `orders`"):
        deliver(shop.access, asked(), rows((1, "a")))


def test_a_column_that_does_not_hold_all_values_comes_with_the_statement(mariadb: MariaDb, tmp_path: Path) -> None:
    shop = of_mariadb(mariadb, tmp_path)
    shop.ask("ALTER TABLE orders MODIFY amount decimal(10,2), MODIFY id int, ADD more int NOT NULL")
    with pytest.raises(DatasourceError) as found:
        deliver(shop.access, asked(), rows((1, "a")))
    assert str(found.value).split(": ", 1)[1].split("; ") == [
        "id is bigint in the feed and int(11) in the table, which does not hold all of its values: "
        "ALTER TABLE `orders` MODIFY COLUMN `id` bigint, or leave it out (fields: {exclude: [id]})",
        "amount is decimal(12,2) in the feed and decimal(10,2) in the table, which does not hold all of its values: "
        "ALTER TABLE `orders` MODIFY COLUMN `amount` decimal(12,2), or leave it out (fields: {exclude: [amount]})",
        "more int(11) must not be null, and is not exported: give it a default, or export it",
    ]
