"""Histories in memory, what the ledger makes of them, and other processes that fold them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from itertools import cycle
from typing import Any

from sqlalchemy import Engine, create_engine, select, text

from falcon_assets.ledger.facts import Fact, FeedInstanceAvailable, InstanceChanged
from falcon_assets.ledger.fold import History
from falcon_assets.ledger.tables import METADATA, PROJECTION
from falcon_assets.planning.instance_record import InstanceState

Content = dict[str, list[tuple[Any, ...]]]
START = datetime(2013, 1, 1, tzinfo=timezone.utc)


def hour(number: int) -> datetime:
    """The hour of that number since the beginning of 2013."""
    return START + timedelta(hours=number)


def ledger_engine(url: str) -> Engine:
    """Connects as the package does: instants are in UTC."""
    return create_engine(url, connect_args={"options": "-c timezone=utc"})


def history_of(facts: Sequence[Fact], sizes: Sequence[int] = (1000,)) -> History:
    """The history of these facts, one event each; it gives no more events at a time than the sizes say, in turn."""
    allowed = cycle(sizes)

    def history(after: int, limit: int) -> tuple[Sequence[Fact], int | None]:
        found = [fact for fact in facts if fact.event_id > after][: min(limit, next(allowed))]
        return found, found[-1].event_id if found else None

    return history


def countable_facts(number: int) -> list[Fact]:
    """Facts that leave a trace each: every second one is a new version, every other one a failure of a new run."""
    facts: list[Fact] = []
    for event_id in range(1, number + 1):
        at, instance = START + timedelta(seconds=event_id), hour(event_id // 2 % 7)
        if event_id % 2:
            facts.append(FeedInstanceAvailable(event_id, "primary", "raw", instance, f"v{event_id}", at))
        else:
            facts.append(
                InstanceChanged(event_id, "p", "primary", instance, InstanceState.FAILED, at, f"run-{event_id}", "no")
            )
    return facts


def content(engine: Engine) -> Content:
    """All columns of all rows of the projection."""
    with engine.connect() as connection:
        return {
            table.name: sorted((tuple(row) for row in connection.execute(select(table))), key=repr)
            for table in PROJECTION
        }


def empty(engine: Engine) -> None:
    """Empties all tables."""
    with engine.begin() as connection:
        connection.execute(text(f"TRUNCATE {', '.join(str(table) for table in METADATA.sorted_tables)}"))


def until_waiting(engine: Engine, number: int) -> None:
    """Waits until that many connections wait for an advisory lock of this database."""
    statement = text(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with engine.connect() as connection:
            if connection.execute(statement).scalar_one() == number:
                return
    raise AssertionError(f"there are never {number} waiting")


def forked(work: Callable[[], object]) -> int:
    """The id of a child that does ``work``; its status is 0 unless it is killed or fails."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)  # an error must not go on as a second pytest
    return child
