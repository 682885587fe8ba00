"""Changes are read once each and none is lost, whatever transactions do meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from tests.features.transfers.source import access_of, connected, opened, rows_of, run_sql
from tests.features.transfers.source_server import source_server
from tests.properties import examples

CHANGES = {"extract": {"incremental": {"column": "at"}}}
MERGED = {"merge": {"upsert": {"key": ["id"]}}}
OVERLAP = {"extract": {"incremental": {"column": "at", "overlap": "minutes(10)"}}, **MERGED}
FEW = {"source": {"name": "shop", "table": "few"}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of its own: transactions of other tests would be waited for."""
    with source_server(tmp_path_factory.mktemp("source")) as started:
        yield started.url


@pytest.fixture
def url(server: str) -> str:
    """With an empty table."""
    run_sql(
        server,
        "DROP TABLE IF EXISTS orders CASCADE",
        "CREATE TABLE orders (id int PRIMARY KEY, at timestamptz DEFAULT clock_timestamp())",
        "CREATE VIEW few AS SELECT * FROM orders",
    )
    return server


@pytest.fixture
def shop(url: str) -> Access:
    return access_of(url)


def read(shop: Access, low: str | None = None, upto: str | None = None, **declared: Any) -> tuple[list[int], Any]:
    """The ids that an instance reads, and its reading."""
    fields = {"include": ["id"]}  # feeds cannot hold all values of the others
    with opened(shop, low=low, upto=upto, **{**CHANGES, "fields": fields, **declared}) as reading:
        return sorted(row["id"] for row in rows_of(reading.parts)), reading


def insert(url: str, *ids: int) -> None:
    run_sql(url, f"INSERT INTO orders (id) VALUES {', '.join(f'({one})' for one in ids)}")


@contextmanager
def open_transaction(url: str, *statements: str) -> Iterator[Any]:
    with connected(url) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        yield connection


def test_an_instance_reads_what_was_written_since_the_one_before(shop: Access, url: str) -> None:
    insert(url, 1, 2)
    ids, first = read(shop)
    assert (ids, first.behind) == ([1, 2], None)
    insert(url, 3)
    run_sql(url, "UPDATE orders SET at = now() WHERE id = 1")
    ids, second = read(shop, first.high)
    assert (ids, second.low) == ([1, 3], first.high)
    assert read(shop, second.high)[0] == []
    with connected(url) as connection:
        connection.autocommit = True
        connection.cursor().execute("VACUUM FREEZE orders")
    assert read(shop, second.high)[0] == []
    assert read(shop)[0] == [1, 2, 3]


def test_what_is_committed_late_is_read_by_the_next_instance(shop: Access, url: str) -> None:
    with open_transaction(url, "INSERT INTO orders (id) VALUES (1)") as late:
        insert(url, 2)
        ids, first = read(shop)
        assert ids == []
        assert first.behind.startswith(f"transaction {first.high.partition('@')[0]}, which began at 20")
        assert first.behind.endswith("Z, is not over: what 2 since then wrote comes later")
        late.commit()
    ids, second = read(shop, first.high)
    assert (ids, second.behind) == ([1, 2], None)
    assert read(shop, second.high)[0] == []


@pytest.mark.parametrize("end", ["COMMIT PREPARED 'it'", "ROLLBACK PREPARED 'it'"])
def test_a_prepared_transaction_is_waited_for(shop: Access, url: str, end: str) -> None:
    with open_transaction(url, "INSERT INTO orders (id) VALUES (1)", "PREPARE TRANSACTION 'it'"):
        pass
    insert(url, 2)
    ids, first = read(shop)
    assert ids == [] and "which began at" in first.behind
    with connected(url) as connection:
        connection.autocommit = True
        connection.cursor().execute(end)
    assert read(shop, first.high)[0] == ([1, 2] if end.startswith("COMMIT") else [2])


def test_parts_of_transactions_are_waited_for_with_the_whole(shop: Access, url: str) -> None:
    parts = [f"SAVEPOINT s; INSERT INTO orders (id) VALUES ({n}); RELEASE s" for n in range(1, 101)]  # over 64 overflow
    undone = "SAVEPOINT u; INSERT INTO orders (id) VALUES (500); ROLLBACK TO u"
    with open_transaction(url, *parts, undone) as late:
        insert(url, 200)
        ids, first = read(shop)
        assert ids == []
        late.commit()
    assert read(shop, first.high)[0] == [*range(1, 101), 200]


def test_locks_and_updates_that_were_undone_change_nothing(shop: Access, url: str) -> None:
    insert(url, 1, 2)
    _, first = read(shop)
    run_sql(url, "SELECT * FROM orders FOR UPDATE")
    with open_transaction(url, "UPDATE orders SET at = now()"):
        pass
    assert read(shop, first.high)[0] == []


def test_an_instance_that_is_read_again_reads_the_same(shop: Access, url: str) -> None:
    insert(url, 1)
    _, first = read(shop)
    insert(url, 2)
    _, second = read(shop, first.high)
    insert(url, 3)
    ids, again = read(shop, first.high, second.high)
    assert (ids, again.low, again.high, again.behind) == ([2], first.high, second.high, None)
    assert read(shop, None, first.high)[0] == [1]


def test_nothing_is_left_for_an_instance_whose_changes_a_later_one_read(shop: Access, url: str) -> None:
    insert(url, 1)
    _, first = read(shop)
    insert(url, 2)
    _, third = read(shop, first.high)
    ids, second = read(shop, first.high, third.low)
    assert (ids, second.parts, second.low, second.high) == ([], [], first.high, first.high)


def test_partitions_show_transactions_and_views_do_not(shop: Access, url: str) -> None:
    run_sql(
        url,
        "DROP TABLE IF EXISTS by_id; DROP MATERIALIZED VIEW IF EXISTS copied",
        """CREATE TABLE by_id (id int, at timestamptz) PARTITION BY RANGE (id);
           CREATE TABLE low PARTITION OF by_id FOR VALUES FROM (0) TO (10);
           CREATE TABLE high PARTITION OF by_id FOR VALUES FROM (10) TO (20);
           INSERT INTO by_id VALUES (1, now())""",
        "CREATE MATERIALIZED VIEW copied AS SELECT * FROM orders",
    )
    there = {"source": {"name": "shop", "table": "by_id"}}
    _, first = read(shop, **there)
    run_sql(url, "INSERT INTO by_id VALUES (11, now())", "UPDATE by_id SET id = 12 WHERE id = 1")
    assert read(shop, first.high, **there)[0] == [11, 12]
    for name in ("few", "copied"):
        with pytest.raises(DatasourceError, match=rf"^{name} of shop does not show the transactions .* with overlap"):
            read(shop, source={"name": "shop", "table": name})


def test_views_are_read_by_a_column_and_again_as_far_back_as_the_overlap(shop: Access, url: str) -> None:
    run_sql(
        url,
        """INSERT INTO orders VALUES (1, '2013-01-01T00:00Z'), (2, '2013-01-01T01:00Z'), (3, NULL), (4, '-infinity')""",
    )
    ids, first = read(shop, **FEW, **OVERLAP)
    assert (ids, first.low, first.high) == ([1, 2, 3, 4], None, "2013-01-01 01:00:00+00")
    run_sql(url, "INSERT INTO orders VALUES (5, '2013-01-01T00:51Z'), (6, '2013-01-01T00:49Z'), (7, 'infinity')")
    run_sql(url, "INSERT INTO orders VALUES (8, now() + interval '1 hour')")
    ids, second = read(shop, first.high, **FEW, **OVERLAP)
    assert (ids, second.low) == ([2, 5, 7, 8], first.high)
    assert second.high < str(run_sql(url, "SELECT clock_timestamp()")[0][0])  # not in the future, where 8 is
    assert read(shop, first.high, first.high, **FEW, **OVERLAP)[0] == [2, 5]


def test_overlap_needs_a_time(shop: Access) -> None:
    number = {"extract": {"incremental": {"column": "id", "overlap": "minutes(10)"}}, **MERGED}
    with pytest.raises(DatasourceError, match=r"^few of shop: column 'id' is integer: overlap is a length of time"):
        read(shop, **FEW, **number)
    with pytest.raises(DatasourceError, match=r"^orders of shop has no column 'att'; there is: at"):
        read(shop, extract={"incremental": {"column": "att"}})


def test_watermarks_of_another_database_are_refused(shop: Access, url: str) -> None:
    insert(url, 1)
    _, first = read(shop)
    number, _, system = first.high.partition("@")
    with pytest.raises(DatasourceError, match=r"was read from another database, .* rerun it with --force --properties"):
        read(shop, f"{number}@{int(system) + 1}")
    with pytest.raises(DatasourceError, match=r"read up to transaction \d+, and the database is at \d+: it was set"):
        read(shop, f"{int(number) + 1_000_000}@{system}")


@pytest.mark.parametrize("name", ["n", "f", "d", "day", "at"])
def test_ranges_of_a_column_are_each_row_once(shop: Access, url: str, name: str) -> None:
    query = """SELECT n AS id, n, n / 7.0::float8 AS f, n * 1.5 AS d, '2013-01-01'::date + n AS day,
                      '2013-01-01'::timestamptz + n * interval '1 h' AS at FROM generate_series(1, 300) AS n
               UNION ALL SELECT 301, NULL, NULL, NULL, NULL, NULL
               UNION ALL SELECT 302, 500, 'Infinity', 'NaN', 'infinity', '-infinity'"""
    ids, reading = read(shop, source={"name": "shop", "query": query}, partition_by=name, extract="full")
    assert ids == [*range(1, 303)]
    assert len(reading.parts) == 3


def test_ranges_need_numbers_or_times_and_differing_values(shop: Access, url: str) -> None:
    insert(url, 7)
    for name, said in (("t", "partition_by needs numbers or times, and 't' is text"), ("x", "has no column 'x'")):
        query = {"name": "shop", "query": "SELECT id, 'a'::text AS t FROM orders"}
        with pytest.raises(DatasourceError, match=said):
            read(shop, source=query, partition_by=name, extract="full")
    ids, reading = read(shop, source={"name": "shop", "table": "few"}, partition_by="id", extract="full")
    assert (ids, len(reading.parts)) == ([7], 1)


def test_numbers_of_transactions_that_start_anew_are_told_apart(tmp_path: Path) -> None:
    """PostgreSQL keeps 32 bits of them: after four billion the old ones come again."""
    with source_server(tmp_path) as server:
        shop = access_of(server.url)
        run_sql(server.url, "CREATE TABLE orders (id int, at timestamptz)", "INSERT INTO orders VALUES (1, now())")
        _, first = read(shop)
        for name in ("postgres", "template1"):
            with connected(f"{server.url.removesuffix('postgres')}{name}") as connection:
                connection.autocommit = True
                connection.cursor().execute("VACUUM FREEZE")
        server.move_to_transaction(2**32 - 20)
        ids, second = read(shop, first.high)
        assert (ids, int(second.high.partition("@")[0])) == ([], 2**32 - 20)
        marks = [second.high]
        for number in range(2, 42):
            run_sql(server.url, f"INSERT INTO orders VALUES ({number}, now())")
            ids, reading = read(shop, marks[-1])
            assert (ids, reading.low) == ([number], marks[-1])
            marks.append(reading.high)
        assert int(marks[-1].partition("@")[0]) == 2**32 + 23
        assert read(shop)[0] == [*range(1, 42)]
        assert read(shop, marks[10], marks[30])[0] == [*range(12, 32)]
        assert read(shop, first.high)[0] == [*range(2, 42)]


ACTIONS = st.lists(
    st.sampled_from(["begin", "insert", "update", "part", "undo part", "commit", "rollback", "read"]).flatmap(
        lambda action: st.tuples(st.just(action), st.integers(0, 2))
    ),
    max_size=40,
)


@given(ACTIONS)
@examples(100)
def test_all_that_was_committed_is_read_and_the_last_state_last(server: str, actions: list[tuple[str, int]]) -> None:
    """Three transactions at once, in any order; instances are read in between."""
    run_sql(server, "DROP TABLE IF EXISTS orders CASCADE", "CREATE TABLE orders (id int, v int, at timestamptz)")
    shop, copied, low, number = access_of(server), dict[int, int](), None, 0

    def import_one(low: str | None) -> str:
        with opened(shop, low=low, **CHANGES) as reading:
            rows = rows_of(reading.parts)
        assert len({row["id"] for row in rows}) == len(rows)
        copied.update((row["id"], row["v"]) for row in rows)
        return str(reading.high)

    with connected(server) as one, connected(server) as two, connected(server) as three:
        sessions = [(session, session.cursor()) for session in (one, two, three)]
        own: list[list[int]] = [[], [], []]  # rows that only this session changes, so that none waits for another
        for action, which in actions:
            (session, cursor), number = sessions[which], number + 1
            if action == "begin":
                cursor.execute("SELECT txid_current()")
            elif action == "insert":
                cursor.execute("INSERT INTO orders VALUES (%s, 0, now())", [number])
                own[which].append(number)
            elif action == "update" and own[which]:
                cursor.execute("UPDATE orders SET v = %s WHERE id = ANY(%s)", [number, own[which]])
            elif action == "part":
                cursor.execute("SAVEPOINT s; INSERT INTO orders VALUES (%s, 0, now()); RELEASE s", [number])
            elif action == "undo part":
                cursor.execute("SAVEPOINT s; INSERT INTO orders VALUES (%s, 0, now()); ROLLBACK TO s", [number])
            elif action == "commit":
                session.commit()
            elif action == "rollback":
                session.rollback()
                own[which].clear()
            else:
                low = import_one(low)
        for session, _ in sessions:
            session.commit()
    import_one(low)
    assert copied == dict(run_sql(server, "SELECT id, v FROM orders"))
