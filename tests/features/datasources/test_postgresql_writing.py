"""Deliveries to PostgreSQL: what they write, once, and what they refuse."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import WriteRequest
from tests.features.datasources.deliveries import as_in_workers, deliver, loaded, opened, request
from tests.features.datasources.test_postgresql import access
from tests.features.transfers.shop import Shop

pytestmark = pytest.mark.usefixtures("as_in_workers")
COLUMNS = [("id", "bigint"), ("name", "string"), ("amount", "decimal(12,2)")]
UPSERT = {"upsert": {"key": ["id"]}}
__all__ = ["as_in_workers"]


@pytest.fixture
def shop(database: str) -> Shop:
    opened = Shop(database, "shop")
    opened.fresh("CREATE TABLE orders (id bigint UNIQUE, name text, amount numeric(12,2), hour timestamptz)")
    return opened


@pytest.fixture
def there(database: str) -> Access:
    return access(database)


def rows(*given: tuple[int | None, str | None]) -> pa.RecordBatch:
    """Orders; the amount of each is a hundredth of its number."""
    ids, names = [one for one, _ in given], [one for _, one in given]
    amounts = [None if one is None else Decimal(one) / 100 for one in ids]
    columns = [pa.array(ids, pa.int64()), pa.array(names, pa.string()), pa.array(amounts, pa.decimal128(12, 2))]
    return pa.RecordBatch.from_arrays(columns, ["id", "name", "amount"])


def asked(hour: int = 0, execution: str = "", **declared: Any) -> WriteRequest:
    """An hour of orders, with its time in ``hour`` unless another is declared."""
    return request(COLUMNS, hour, execution, **{"table": "shop.orders", "partition": "hour"} | declared)


def there_is(shop: Shop) -> list[tuple[Any, ...]]:
    return shop.ask("SELECT id, name, extract(hour FROM hour AT TIME ZONE 'UTC')::int FROM orders ORDER BY id, hour")


def test_all_parts_are_there_at_once_with_their_delivery(there: Access, shop: Shop) -> None:
    def last() -> None:
        assert there_is(shop) == []

    assert deliver(there, asked(3), rows((1, "a"), (2, "")), rows((3, None)), last=last) == 3
    assert there_is(shop) == [(1, "a", 3), (2, "", 3), (3, None, 3)]
    told = shop.ask("SELECT execution, target, feed, cluster, version, at <= now() FROM falcon_deliveries")
    name = "execution of 2013-01-01 03:00:00+00:00"
    assert told == [(name, "orders", "orders", "primary", f"version of {name}", True)]
    assert (shop.deliveries, shop.staging) == ([(3, 3)], [])


def test_an_execution_is_delivered_once(there: Access, shop: Shop) -> None:
    assert deliver(there, asked(), rows((1, "a"))) == 1
    assert deliver(there, asked(), rows((1, "changed"), (2, "b"))) == 1
    assert (there_is(shop), shop.deliveries) == ([(1, "a", 0)], [(0, 1)])


def test_two_attempts_at_one_execution_are_one_delivery(there: Access, shop: Shop) -> None:
    with opened(there, asked()) as first, opened(there, asked()) as second:
        parts = [loaded(one, 0, rows((1, "a"), (2, "b"))) for one in (first, second)]
        assert second.commit([parts[1]], lambda: None) == 2
        assert first.commit([parts[0]], lambda: None) == 2
    assert (there_is(shop), shop.deliveries, shop.staging) == ([(1, "a", 0), (2, "b", 0)], [(0, 2)], [])


def test_an_attempt_that_was_overtaken_writes_nothing(there: Access, shop: Shop) -> None:
    with opened(there, asked(execution="old")) as old:
        part = loaded(old, 0, rows((1, "old")))
        deliver(there, asked(execution="new"), rows((1, "new")))
        with pytest.raises(DatasourceError, match="orders 2013-01-01T00:00Z was delivered by another attempt"):
            old.commit([part], lambda: None)
    assert (there_is(shop), shop.deliveries, shop.staging) == ([(1, "new", 0)], [(0, 1)], [])


def test_what_must_not_become_visible_at_last_does_not(there: Access, shop: Shop) -> None:
    def last() -> None:
        raise DatasourceError("no")

    with pytest.raises(DatasourceError, match="no"):
        deliver(there, asked(), rows((1, "a")), last=last)
    assert (there_is(shop), shop.deliveries, shop.staging) == ([], [], [])


def test_insert_replaces_what_the_instance_wrote(there: Access, shop: Shop) -> None:
    deliver(there, asked(1), rows((1, "a"), (2, "b")))
    deliver(there, asked(2), rows((3, "c")))
    deliver(there, asked(1, "again"), rows((2, "late")))
    assert there_is(shop) == [(2, "late", 1), (3, "c", 2)]


def test_an_empty_instance_takes_back_what_it_wrote(there: Access, shop: Shop) -> None:
    deliver(there, asked(1), rows((1, "a")))
    assert deliver(there, asked(1, "again")) == 0
    assert deliver(there, asked(2), rows()) == 0
    assert (there_is(shop), shop.deliveries) == ([], [(1, 1), (1, 0), (2, 0)])


def test_replace_partition_replaces_the_period_whoever_wrote_it(there: Access, shop: Shop) -> None:
    shop.ask("INSERT INTO orders VALUES (7, 'by hand', 0, '2013-01-01T01:59:59Z'), (8, '', 0, '2013-01-01T02:00Z')")
    deliver(there, asked(1, load="replace_partition"), rows((1, "a")))
    assert there_is(shop) == [(1, "a", 1), (8, "", 2)]


def test_upsert_replaces_rows_of_the_same_key(there: Access, shop: Shop) -> None:
    shop.ask("INSERT INTO orders VALUES (1, 'by hand', 5, NULL), (9, 'other', 0, NULL)")
    deliver(there, asked(1, load=UPSERT, partition=None), rows((1, "a")), rows((2, "b")))
    deliver(there, asked(2, load=UPSERT, partition=None), rows((2, "c")))
    assert there_is(shop) == [(1, "a", None), (2, "c", None), (9, "other", None)]


def test_upsert_leaves_what_a_newer_instance_wrote_where_it_is_told(there: Access, shop: Shop) -> None:
    deliver(there, asked(2, load=UPSERT), rows((1, "new")))
    deliver(there, asked(1, load=UPSERT), rows((1, "old"), (2, "b")))
    assert there_is(shop) == [(1, "new", 2), (2, "b", 1)]


def test_upsert_of_nothing_but_keys(there: Access, shop: Shop) -> None:
    only = request([("id", "bigint")], table="shop.orders", load=UPSERT)
    deliver(there, only, rows((1, None), (2, None)).select(["id"]))
    assert shop.ask("SELECT id FROM orders ORDER BY 1") == [(1,), (2,)]


def test_replace_keeps_the_newest_instance(there: Access, shop: Shop) -> None:
    how = {"load": "replace", "partition": None}
    deliver(there, asked(1, **how), rows((1, "a")))
    deliver(there, asked(2, **how), rows((2, "b")))
    with pytest.raises(DatasourceError) as found:
        deliver(there, asked(1, "again", **how), rows((1, "a")))
    assert str(found.value) == (
        "shop.orders has 2013-01-01T02:00Z, which is newer than orders 2013-01-01T01:00Z, and load: replace keeps the "
        "newest instance: nothing is written"
    )
    assert there_is(shop) == [(2, "b", None)]


def test_a_missing_table_comes_with_the_statement_that_creates_it(there: Access, shop: Shop) -> None:
    wanted = asked(table="shop.Sales", load=UPSERT)
    with pytest.raises(DatasourceError) as found:
        deliver(there, wanted, rows((1, "a")))
    said, statement = str(found.value).split(" This creates it: ")
    assert said.startswith("datasource 'shop' has no table 'shop.Sales'")
    shop.ask(statement)
    assert deliver(there, wanted, rows((1, "a"))) == 1
    assert shop.ask('SELECT id, name, amount FROM "Sales"') == [(1, "a", Decimal("0.01"))]


def test_all_that_does_not_fit_is_said_at_once_and_what_to_do(there: Access, shop: Shop) -> None:
    shop.ask("""CREATE TABLE other (id int, "Name" text, amount numeric(10,2), hour text, "more" int NOT NULL,
                                    twice int GENERATED ALWAYS AS (id * 2) STORED)""")
    columns = [*COLUMNS, ("twice", "int")]
    with pytest.raises(DatasourceError) as found:
        deliver(there, request(columns, table="shop.other", partition="hour"))
    assert str(found.value).split(": ", 1)[1].split("; ") == [
        "id is bigint in the feed and integer in the table, which does not hold all of its values: "
        'ALTER TABLE "shop"."other" ALTER COLUMN "id" TYPE bigint, or leave it out (fields: {exclude: [id]})',
        "name string is not in the table (there is Name: upper and lower case count): "
        'ALTER TABLE "shop"."other" ADD COLUMN "name" text, or leave it out (fields: {exclude: [name]})',
        "amount is decimal(12,2) in the feed and numeric(10,2) in the table, which does not hold all of its values: "
        'ALTER TABLE "shop"."other" ALTER COLUMN "amount" TYPE numeric(12,2), '
        "or leave it out (fields: {exclude: [amount]})",
        "twice is generated by the table: rename it in the feed, or leave it out (fields: {exclude: [twice]})",
        "hour, which the export fills, is text, and has to be a timestamp or a date",
        "more integer must not be null, and is not exported: give it a default, or export it",
    ]


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"load": {"upsert": {"key": ["name"]}}}, 'CREATE UNIQUE INDEX ON "shop"."orders" \\("name"\\)$'),
        ({"load": {"upsert": {"key": ["code"]}}}, "code of the key is not exported$"),
        ({"partition": None}, "load: insert needs partition: the column of the table that has the time"),
        ({"partition": "name"}, "name is filled by the export, with the time of the instance: rename it in the feed"),
    ],
)
def test_declared_ways_that_the_table_does_not_have(there: Access, shop: Shop, declared: Any, said: str) -> None:
    with pytest.raises(DatasourceError, match=said):
        deliver(there, asked(**declared), rows((1, "a")))
    assert shop.staging == []


def test_a_key_has_one_row_in_an_instance(there: Access, shop: Shop) -> None:
    with pytest.raises(DatasourceError) as found:
        deliver(there, asked(load=UPSERT), rows((1, "a"), (2, "b")), rows((1, "c"), (3, ""), (2, "d")))
    assert str(found.value) == (
        "datasource 'shop': orders 2013-01-01T00:00Z has several rows for 2 values by the key id: a key has one row in "
        "an instance"
    )
    with pytest.raises(DatasourceError, match="orders 2013-01-01T00:00Z has 1 row without id, which is in the key"):
        deliver(there, asked(load=UPSERT), rows((None, "a"), (2, "b")))
    assert (there_is(shop), shop.staging) == ([], [])


def test_rows_that_the_table_refuses_are_none_of_the_message(there: Access, shop: Shop) -> None:
    shop.ask("ALTER TABLE orders ADD CHECK (name <> 'secret')")
    with pytest.raises(DatasourceError) as found:
        deliver(there, asked(), rows((1, "secret")))
    assert "orders_name_check" in str(found.value) and "secret" not in str(found.value)
    deliver(there, asked(), rows((1, "a")))
    with pytest.raises(DatasourceError, match=r'constraint "orders_id_key": load: \{upsert: .*\} replaces rows'):
        deliver(there, asked(1), rows((1, "b")))
    assert there_is(shop) == [(1, "a", 0)]


def test_text_that_postgresql_does_not_hold_names_its_column(there: Access, shop: Shop) -> None:
    with pytest.raises(DatasourceError) as found:
        deliver(there, asked(), rows((1, "a"), (2, "b\0c")))
    assert str(found.value) == ("datasource 'shop': column name: invalid byte sequence for encoding \"UTF8\": 0x00")
    assert shop.staging == []


def test_deliveries_to_one_table_at_once_wait_for_each_other(there: Access, shop: Shop) -> None:
    many = [(number, f"order {number}") for number in range(500)]

    def one(hour: int) -> int:
        order = many if hour % 2 else many[::-1]  # rows locked in another order would be a deadlock
        return deliver(there, asked(hour, load=UPSERT), rows(*order[:250]), rows(*order[250:]))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(8))) == [500] * 8
    assert there_is(shop) == [(number, name, 7) for number, name in many]
    assert (sorted(shop.deliveries), shop.staging) == ([(hour, 500) for hour in range(8)], [])


def test_what_a_dead_delivery_left_goes_with_the_next_one_and_that_of_a_living_one_stays(
    there: Access, shop: Shop
) -> None:
    with ExitStack() as stack:
        dead, alive = (stack.enter_context(opened(there, asked(hour))) for hour in (1, 2))
        parts = [loaded(one, 0, rows((hour, "a"))) for hour, one in ((1, dead), (2, alive))]
        dead.connection.close()  # type: ignore[attr-defined]
        assert len(shop.staging) == 2
        deliver(there, asked(3), rows((3, "b")))
        assert len(shop.staging) == 1
        assert alive.commit([parts[1]], lambda: None) == 1
        with pytest.raises(DatasourceError, match="connection already closed"):
            dead.commit([parts[0]], lambda: None)
    assert (there_is(shop), shop.staging) == ([(2, "a", 2), (3, "b", 3)], [])


def test_an_attempt_at_a_part_that_was_given_up_is_not_delivered(there: Access, shop: Shop) -> None:
    with opened(there, asked()) as writing:
        loaded(writing, 0, rows((1, "lost"), (2, "lost")), attempt=1)
        part = loaded(writing, 0, rows((1, "a")), attempt=2)
        assert len(shop.staging) == 2
        writing.commit([part], lambda: None)
    assert (there_is(shop), shop.staging) == ([(1, "a", 0)], [])


def test_a_part_that_the_server_lost_is_noticed(there: Access, shop: Shop) -> None:
    with opened(there, asked()) as writing:
        part = loaded(writing, 0, rows((1, "a"), (2, "b")))
        shop.ask(f"TRUNCATE {shop.staging[0]}")  # as the recovery of a server that crashed does
        with pytest.raises(DatasourceError, match="0 of 2 loaded rows are there: nothing is written"):
            writing.commit([part], lambda: None)
    assert shop.deliveries == []


def test_names_may_be_any(there: Access, shop: Shop) -> None:
    shop.ask('CREATE TABLE "50% off" ("a ""b" bigint, "%s" text, "T" date)')
    columns = [('a "b', "bigint"), ("%s", "string")]
    asked_for = request(columns, table="shop.50% off", partition="T")
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array(["x"])], ['a "b', "%s"])
    deliver(there, asked_for, batch)
    assert shop.ask('SELECT "a ""b", "T"::text FROM "50% off"') == [(1, "2013-01-01")]


def test_a_date_needs_instances_of_days(there: Access, shop: Shop) -> None:
    shop.ask("ALTER TABLE orders ALTER hour TYPE date")
    with pytest.raises(DatasourceError, match="hour is a date, and 2013-01-01T05:00Z is no midnight in UTC"):
        deliver(there, asked(5), rows((1, "a")))


def test_a_column_without_a_time_zone_has_it_in_utc(there: Access, shop: Shop) -> None:
    shop.ask("ALTER TABLE orders ALTER hour TYPE timestamp")
    deliver(there, asked(5), rows((1, "a")))
    assert re.fullmatch("2013-01-01 05:00:00", shop.ask("SELECT hour::text FROM orders")[0][0])
