"""Watermarks against a search by hand, over random timelines and rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, insert

from falcon_assets.history.database import upgrade
from falcon_assets.history.tables import FEED_INSTANCES
from falcon_assets.instances.store.watermarks import watermark
from falcon_assets.model.frequency import Frequency
from falcon_assets.planning.timeline import Timeline
from tests.ledger.histories import ledger_engine

START = datetime(2013, 3, 28, 7, tzinfo=UTC)
FREQUENCIES = ("minutes(45)", "hours(1)", "hours(5)", "days(1)", "days(2)", "months(1)")
ZONES = ("UTC", "Europe/Berlin", "America/Los_Angeles", "Asia/Kolkata")


@pytest.fixture(scope="module")
def engine(database: str) -> Iterator[Engine]:
    """The engine of the module's database, with the tables of the ledger."""
    engine = ledger_engine(database)
    upgrade(engine)
    yield engine
    engine.dispose()


def store(connection: Connection, instances: list[datetime], state: str) -> None:
    rows = [
        {
            **{"cluster": "primary", "feed": "raw", "instance": one, "version": "v", "landed_at": one, "seen_at": one},
            **{"event_id": 1, "changes": 0, "version_event": 1, "late": False, "state": state},
        }
        for one in instances
    ]
    if rows:
        connection.execute(insert(FEED_INSTANCES), rows)


@given(
    frequency=st.sampled_from(FREQUENCIES),
    zone=st.sampled_from(ZONES),
    length=st.integers(0, 40),
    there=st.lists(st.sampled_from(["AVAILABLE", "EVICTED", "MISSING", "landed", ""]), max_size=40),
    minutes=st.integers(-60, 30_000),
)
def test_it_is_the_first_instance_that_is_not_there(
    engine: Engine, frequency: str, zone: str, length: int, there: list[str], minutes: int
) -> None:
    step = Frequency.parse(frequency)
    line = Timeline(START, datetime(2013, 6, 1, tzinfo=UTC), step, zone)
    instances = [line.instance(k) for k in range(length)]
    now = START + timedelta(minutes=minutes)
    states = dict(zip(instances, there, strict=False))
    with engine.connect() as connection, connection.begin() as transaction:
        for state in ("AVAILABLE", "EVICTED", "MISSING"):
            store(connection, [one for one, known in states.items() if known == state], state)
        off = [one + timedelta(minutes=7) for one in instances]  # of an earlier definition
        store(connection, off, "AVAILABLE")
        landed = [one for one, known in states.items() if known == "landed"]
        found = watermark(connection, line, "primary", "raw", now, landed)
        transaction.rollback()
    due = line.until(now)
    missing = [one for one in due if states.get(one) not in ("AVAILABLE", "EVICTED", "landed")]
    expected = missing[0] if missing else line.instance(len(due))
    assert found == expected
