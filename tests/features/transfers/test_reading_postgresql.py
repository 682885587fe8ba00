"""Tables and queries of PostgreSQL are read as they are: in one snapshot, with few connections, at a pace."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg2.extensions import get_wait_callback, set_wait_callback

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.queries import bound
from falcon_assets.features.datasources.types.postgresql.ranges import LEAST_PAGES, page_ranges
from tests.features.transfers.source import access_of, connected, opened, read, rows_of, run_sql, types_of
from tests.hours import hour
from tests.waiting import wait_until

NARROW_ROWS = 40_000


@pytest.fixture(scope="module")
def url(database: str) -> str:
    run_sql(
        database,
        "CREATE TABLE orders (id int PRIMARY KEY, text text)",
        f"INSERT INTO orders SELECT n, repeat('x', 100) FROM generate_series(1, {NARROW_ROWS}) n",
        """CREATE TABLE by_day (id int, day date) PARTITION BY RANGE (day);
           CREATE TABLE jan PARTITION OF by_day FOR VALUES FROM ('2013-01-01') TO ('2013-02-01');
           CREATE TABLE feb PARTITION OF by_day FOR VALUES FROM ('2013-02-01') TO ('2013-03-01');
           INSERT INTO by_day SELECT n, '2013-01-01'::date + n % 59 FROM generate_series(1, 100000) n""",
        "CREATE TABLE nothing (id int)",
        "CREATE TABLE bare ()",
        "CREATE VIEW few AS SELECT id FROM orders WHERE id <= 3",
    )
    return database


@pytest.fixture(scope="module")
def shop(url: str) -> Access:
    return access_of(url)


def ids(rows: list[dict[str, int]]) -> list[int]:
    return sorted(row["id"] for row in rows)


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_the_parts_of_a_table_are_each_row_once(shop: Access, parts: int) -> None:
    with opened(shop, parts=parts) as reading:
        assert len(reading.parts) == parts
        each = [rows_of([part]) for part in reading.parts]
    assert ids([row for rows in each for row in rows]) == [*range(1, NARROW_ROWS + 1)]
    assert min(map(len, each)) > NARROW_ROWS / parts * 0.9


def test_the_parts_of_a_partitioned_table_are_each_row_once(shop: Access) -> None:
    with opened(shop, source={"name": "shop", "table": "by_day"}) as reading:
        assert len(reading.parts) == 3
        each = [rows_of([part]) for part in reading.parts]
    assert ids([row for rows in each for row in rows]) == [*range(1, 100_001)]
    assert min(map(len, each)) > 30_000


def test_all_parts_see_what_there_was_when_it_was_opened(shop: Access, url: str) -> None:
    run_sql(url, "CREATE TABLE moved AS SELECT n AS id, repeat('x', 200) AS text FROM generate_series(1, 30000) n")
    with opened(shop, source={"name": "shop", "table": "moved"}) as reading:
        assert len(reading.parts) == 3
        first = rows_of(reading.parts[:1])
        run_sql(url, "UPDATE moved SET id = id + 100000")  # all rows go to pages behind
        run_sql(url, "DELETE FROM moved WHERE id % 2 = 0")
        rest = rows_of(reading.parts[1:])
    assert ids(first + rest) == [*range(1, 30_001)]


@pytest.mark.parametrize(("connections", "parts"), [(1, 1), (2, 1), (3, 2), (4, 3)])
def test_no_more_connections_than_the_throttle_allows(url: str, connections: int, parts: int) -> None:
    with opened(access_of(url, connections=connections), parts=8) as reading:
        assert len(reading.parts) == parts
        held = run_sql(url, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'falcon shop'")[0][0]
        assert held + parts <= connections


def test_queries_have_the_times_of_the_instance(shop: Access) -> None:
    query = "SELECT :start AS first, :end AS last, ':start' AS text, id FROM orders WHERE id < 3 -- :end\n;"
    rows = read(shop, source={"name": "shop", "query": query})
    assert rows == [{"first": hour(1), "last": hour(2), "text": ":start", "id": n} for n in (1, 2)]


def test_views_and_empty_tables(shop: Access) -> None:
    assert ids(read(shop, source={"name": "shop", "table": "few"})) == [1, 2, 3]
    assert read(shop, source={"name": "shop", "table": "nothing"}) == []


def test_null_is_not_the_empty_text(shop: Access, url: str) -> None:
    run_sql(
        url,
        "CREATE TABLE texts (a text)",
        "INSERT INTO texts VALUES (NULL), (''), ('NULL'), ('\\.'), (E'a\nb'), (E'\"'), (NULL)",
    )
    rows = read(shop, source={"name": "shop", "table": "texts"})
    assert [row["a"] for row in rows] == [None, "", "NULL", "\\.", "a\nb", '"', None]


def test_rows_may_be_larger_than_a_block(shop: Access) -> None:
    query = "SELECT n AS id, repeat('ä', n * 5000000) AS text FROM generate_series(0, 2) n"
    rows = read(shop, source={"name": "shop", "query": query})
    assert [(row["id"], len(row["text"])) for row in rows] == [(0, 0), (1, 5_000_000), (2, 10_000_000)]


def test_fields_choose_columns(shop: Access) -> None:
    with opened(shop, fields={"include": ["text", "id"]}) as reading:
        assert [*types_of(reading)] == ["text", "id"]
    with opened(shop, fields={"exclude": ["text"]}) as reading:
        assert types_of(reading) == {"id": "int"}


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"fields": {"include": ["idd"]}}, "orders of shop has no column 'idd'; there is: id"),
        ({"fields": {"exclude": ["ID"]}}, "orders of shop has no column 'ID'; there is: id"),
        ({"source": {"name": "shop", "table": "order"}}, "datasource 'shop' has no table 'order'; there is: orders"),
        ({"source": {"name": "shop", "table": "bare"}}, "bare of shop has no columns"),
        ({"source": {"name": "shop", "query": "SELECT 1; SELECT 2"}}, "the query must be a single statement"),
        ({"source": {"name": "shop", "query": "SELECT 'x"}}, "the query cannot be read: "),
        (
            {"source": {"name": "shop", "query": "DELETE FROM orders RETURNING id"}},
            "datasource 'shop': syntax error at or near",
        ),
        (
            {"source": {"name": "shop", "query": 'SELECT 1 AS a, 2 AS "A"'}},
            "a query of shop: columns a and A are the same name to Spark: leave one out (fields), or rename it in a",
        ),
    ],
)
def test_what_cannot_be_read_is_said_when_it_is_opened(shop: Access, declared: dict[str, object], said: str) -> None:
    with pytest.raises(DatasourceError) as found, opened(shop, **declared):
        pass
    assert str(found.value).startswith(said)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("'infinity'::date", "(date) has 'infinity', which no date of a feed can be"),
        ("'-infinity'::timestamptz", "(timestamp with time zone) has '-infinity', which no timestamp of a feed can be"),
        ("'0044-03-15 BC'::date", "(date) has '0044-03-15 BC', which no date of a feed can be"),
        ("'NaN'::numeric(5,2)", "(numeric(5,2)) has 'NaN', which no decimal(5,2) of a feed can be"),
        ("ARRAY['infinity'::date]", "(date[]) has a value, which no array<date> of a feed can be"),
        ("ARRAY[[1,2]]", "(integer[]) has arrays of other than 1 dimension, which is what it declares"),
    ],
)
def test_values_that_no_feed_can_hold_name_their_column(shop: Access, value: str, said: str) -> None:
    with pytest.raises(DatasourceError) as found:
        read(shop, source={"name": "shop", "query": f"SELECT 1 AS id, {value} AS due"})
    assert str(found.value).startswith(f"a query of shop: column due {said}")


def test_an_error_while_rows_come_is_told(shop: Access) -> None:
    with pytest.raises(DatasourceError, match=r"^datasource 'shop': division by zero$"):
        read(shop, source={"name": "shop", "query": "SELECT 1 / (50000 - id) AS n FROM generate_series(1, 50000) id"})


def test_nobody_need_read_all(shop: Access, url: str) -> None:
    waiting = get_wait_callback()
    set_wait_callback(None)
    try:
        with opened(shop, source={"name": "shop", "query": "SELECT generate_series(1, 100000000) AS id"}) as reading:
            batches = reading.parts[0].batches()
            assert next(batches).num_rows > 0
            batches.close()
    finally:
        set_wait_callback(waiting)
    running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY%%' AND state = 'active'"
    assert run_sql(url, running) == [(0,)]


def test_rows_come_at_the_pace_of_the_throttle(url: str) -> None:
    began = time.monotonic()
    rows = read(access_of(url, rows_per_second=20_000), parts=1)
    assert len(rows) == NARROW_ROWS
    assert time.monotonic() - began > NARROW_ROWS / 20_000 * 0.9


def test_the_leader_is_not_ended_while_others_read(url: str) -> None:
    name = run_sql(url, "SELECT current_database()")[0][0]
    run_sql(url, f"ALTER DATABASE {name} SET idle_in_transaction_session_timeout = '200ms'")
    try:
        with opened(access_of(url)) as reading:
            with connected(url) as other, other.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                ((number,),) = cursor.fetchall()  # a later one that waits in a transaction is ended
                there = f"SELECT FROM pg_stat_activity WHERE pid = {number}"
                wait_until(lambda: not run_sql(url, there))
            assert len(rows_of(reading.parts)) == NARROW_ROWS
    finally:
        run_sql(url, f"ALTER DATABASE {name} RESET idle_in_transaction_session_timeout")


def test_parts_show_no_password(url: str) -> None:
    hidden = Access(**{**vars(access_of(url)), "password": "sesam-17-x"})
    with opened(access_of(url)) as reading:
        part = reading.parts[0]
    assert "sesam-17-x" not in repr(type(part)(**{**vars(part), "access": hidden}))


@given(st.lists(st.integers(0, 5_000), max_size=5), st.integers(1, 20))
def test_page_ranges_cover_all_pages_evenly(pages: list[int], parts: int) -> None:
    ranges = page_ranges(pages, parts)
    assert 1 <= len(ranges) <= parts
    assert ranges[0][0] == 0 and ranges[-1][1] is None
    assert all(end == first for (_, end), (first, _) in pairwise(ranges))
    ends = [end if end is not None else 10_000 for _, end in ranges]
    sizes = [
        sum(max(0, min(one, end) - min(one, first)) for one in pages)
        for (first, _), end in zip(ranges, ends, strict=True)
    ]
    assert sum(sizes) == sum(pages)
    if len(ranges) > 1:
        assert max(sizes) - min(sizes) <= 2 * len(pages)
        assert sum(pages) // LEAST_PAGES >= len(ranges)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT :start, :END", "SELECT S, E"),
        ("SELECT ':start' || $$:end$$, a::text, \":end\" /* :start */", None),
        ("SELECT :starting, x[1:2]", None),
        ("SELECT :end;;\n", "SELECT E"),
    ],
)
def test_only_parameters_are_bound(query: str, expected: str | None) -> None:
    assert bound(query, "postgres", {"start": "S", "end": "E"}) == (query if expected is None else expected)


def test_times_are_bound_with_a_zone(shop: Access) -> None:
    (row,) = read(shop, source={"name": "shop", "query": "SELECT pg_typeof(:start)::text AS type, :end AS at"})
    assert row == {"type": "timestamp with time zone", "at": datetime(2013, 1, 1, 2, tzinfo=UTC)}
