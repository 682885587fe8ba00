"""Parts of long lists of instances."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection, Engine, text

from falcon_assets.ledger.instance_pages import Span, counted, rows_of
from falcon_assets.planning.instances.instance_record import InstanceState
from tests.ledger.histories import hour

ROWS = 20_000
SPANS = [Span(name, "primary", hour(0), hour(ROWS)) for name in ("p0", "p1", "p2")]


@pytest.fixture
def many(engine: Engine) -> Engine:
    """All of them succeeded but for one in a thousand."""
    insert = """
        INSERT INTO falcon.process_instances (process, cluster, nominal, state, reason, attempt, failures, event_id)
        SELECT p, 'primary', timestamptz '2013-01-01 00:00+00' + n * interval '1 hour',
               CASE WHEN n % 1000 = 999 THEN 'FAILED' ELSE 'SUCCEEDED' END, '', 1, 0, n
        FROM unnest(array['p0', 'p1', 'p2']) p, generate_series(0, :last) n
    """
    with engine.begin() as connection:
        connection.execute(text(insert), {"last": ROWS - 1})
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE falcon.process_instances"))
    return engine


def read(connection: Connection) -> int:
    """How many rows of the table this transaction has read, by an index or not; a pooled one counts on from others."""
    statement = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'process_instances'"
    return connection.execute(text(statement)).scalar() or 0


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("by_time", [False, True])
@pytest.mark.parametrize("states", [None, {InstanceState.FAILED}, {InstanceState.FAILED, InstanceState.KILLED}])
def test_few_rows_are_read(many: Engine, states: set[InstanceState] | None, by_time: bool, descending: bool) -> None:
    with many.begin() as connection:
        before = read(connection)
        found = rows_of(connection, SPANS, states, 10, by_time=by_time, descending=descending)
        assert read(connection) - before <= 10 * len(SPANS)
    keys = [(record.nominal, name) if by_time else (name, record.nominal) for name, _, record in found]
    assert len(keys) == 10
    assert keys == sorted(keys, reverse=descending)


def test_the_state_is_counted(many: Engine) -> None:
    with many.begin() as connection:
        before = read(connection)
        found = counted(connection, SPANS, {InstanceState.FAILED})
        assert read(connection) - before <= 3 * ROWS // 1000
    assert found == {(f"p{number}", "primary"): {InstanceState.FAILED: ROWS // 1000} for number in range(3)}
    with many.begin() as connection:
        assert sum(sum(one.values()) for one in counted(connection, SPANS, None).values()) == 3 * ROWS
