"""Parts of long lists of instances."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Connection, Engine, text

from falcon_assets.instances.store.instance_pages import FEED_ROWS, InstanceRows, Span, Steps
from falcon_assets.instances.store.process_rows import PROCESS_ROWS
from falcon_assets.planning.instance_record import FeedState, InstanceState
from tests.hours import HOUR, hour

ROWS = 20_000
SPANS = [Span(name, "primary", hour(0), hour(ROWS)) for name in ("p0", "p1", "p2")]
INSERTS = {
    "process_instances": """
        INSERT INTO falcon.process_instances (process, cluster, nominal, state, reason, attempt, failures, event_id)
        SELECT p, 'primary', timestamptz '2013-01-01 00:00+00' + n * interval '1 hour',
               CASE WHEN n % 1000 = 999 THEN 'FAILED' ELSE 'SUCCEEDED' END, '', 1, 0, n
        FROM unnest(array['p0', 'p1', 'p2']) p, generate_series(0, :last) n
    """,
    "feed_instances": """
        INSERT INTO falcon.feed_instances (
            feed, cluster, instance, state, version, landed_at, seen_at, changes, event_id, version_event, late
        )
        SELECT p, 'primary', at, CASE WHEN n % 1000 = 999 THEN 'EVICTED' ELSE 'AVAILABLE' END, 'v', at, at, 0, n, n,
               false
        FROM unnest(array['p0', 'p1', 'p2']) p, generate_series(0, :last) n,
             LATERAL (SELECT timestamptz '2013-01-01 00:00+00' + n * interval '1 hour') _ (at)
    """,
}
PROCESSES = (PROCESS_ROWS, InstanceState.FAILED, InstanceState.KILLED)
FEEDS = (FEED_ROWS, FeedState.EVICTED, FeedState.MISSING)


@pytest.fixture(scope="module")
def many(ledger: Engine) -> Engine:
    """All of them succeeded, or are there, but for one in a thousand; all tests here only read."""
    with ledger.begin() as connection:
        for insert in INSERTS.values():
            connection.execute(text(insert), {"last": ROWS - 1})
    with ledger.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for table in INSERTS:
            connection.execute(text(f"VACUUM ANALYZE falcon.{table}"))
    return ledger


def read(connection: Connection, rows: InstanceRows[Any, Any]) -> int:
    """How many rows of the table this transaction has read, by an index or not; a pooled one counts on from others."""
    statement = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = :table"
    return connection.execute(text(statement), {"table": rows.table.name}).scalar() or 0


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("by_time", [False, True])
@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("kind", [PROCESSES, FEEDS], ids=["processes", "feeds"])
def test_few_rows_are_read(many: Engine, kind: Any, number: int, by_time: bool, descending: bool) -> None:
    rows, *states = kind
    with many.begin() as connection:
        before = read(connection, rows)
        wanted = set(states[:number]) or None
        found = rows.first(connection, SPANS, wanted, 10, by_time=by_time, descending=descending)
        assert read(connection, rows) - before <= 10 * len(SPANS)
    keys = [(nominal, name) if by_time else (name, nominal) for (name, _, nominal), _ in found]
    assert len(keys) == 10
    assert keys == sorted(keys, reverse=descending)


@pytest.mark.parametrize("kind", [PROCESSES, FEEDS], ids=["processes", "feeds"])
def test_the_state_is_counted(many: Engine, kind: Any) -> None:
    rows, state, _ = kind
    with many.begin() as connection:
        before = read(connection, rows)
        found = rows.counted(connection, SPANS, {state}, {})
        assert read(connection, rows) - before <= 3 * ROWS // 1000
    assert found == {(f"p{number}", "primary"): {state: (ROWS // 1000, 0)} for number in range(3)}
    with many.begin() as connection:
        counts = rows.counted(connection, SPANS, None, {})
        assert sum(count.number for one in counts.values() for count in one.values()) == 3 * ROWS


def test_steps_are_counted(many: Engine) -> None:
    steps = {("p0", "primary"): Steps(hour(5), hour(50), 3 * HOUR)}
    with many.begin() as connection:
        found = FEED_ROWS.counted(connection, SPANS, None, steps)
    on_steps = {name: sum(count.on_steps for count in one.values()) for (name, _), one in found.items()}
    assert on_steps == {"p0": 16, "p1": 0, "p2": 0}


def test_the_latest_and_some(many: Engine) -> None:
    with many.begin() as connection:
        before = read(connection, FEED_ROWS)
        latest = FEED_ROWS.latest(connection, SPANS, 4)
        keys = [("p0", "primary", hour(7)), ("p1", "backup", hour(7)), ("p2", "primary", hour(ROWS))]
        some = FEED_ROWS.some(connection, keys)
        assert read(connection, FEED_ROWS) - before <= 4 * len(SPANS) + 1
    expected = {(span.entity, "primary", hour(ROWS - number)) for span in SPANS for number in (1, 2, 3, 4)}
    assert {key for key, _ in latest} == expected
    assert list(some) == keys[:1]
