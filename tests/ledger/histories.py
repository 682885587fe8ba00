"""Histories in memory, what the ledger makes of them, and other processes that fold them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from itertools import cycle
from typing import Any

from sqlalchemy import Engine, create_engine, select, text

from falcon_assets.ledger.facts import CameTooLate, Consumption, Fact, FeedInstanceAvailable, InstanceChanged
from falcon_assets.ledger.fold import History
from falcon_assets.ledger.tables import METADATA, PROJECTION
from falcon_assets.planning.instances.instance_record import InstanceState
from tests.waiting import wait_until

Content = dict[str, list[tuple[Any, ...]]]
START = datetime(2013, 1, 1, tzinfo=timezone.utc)


def hour(number: int) -> datetime:
    """The hour of that number since the beginning of 2013."""
    return START + timedelta(hours=number)


def ledger_engine(url: str) -> Engine:
    """Connects as the package does: instants are in UTC."""
    return create_engine(url, connect_args={"options": "-c timezone=utc"})


def chunks_of(facts: Sequence[Fact], sizes: Sequence[int]) -> Callable[[int, int], tuple[Sequence[Fact], int | None]]:
    """Gives these facts, one event each: those after an event, no more at a time than the sizes say, in turn."""
    allowed = cycle(sizes)

    def chunk(after: int, limit: int) -> tuple[Sequence[Fact], int | None]:
        found = [fact for fact in facts if fact.event_id > after][: min(limit, next(allowed))]
        return found, found[-1].event_id if found else None

    return chunk


def history_of(facts: Sequence[Fact], sizes: Sequence[int] = (1000,)) -> History:
    """The history of these facts, in such chunks."""
    chunk = chunks_of(facts, sizes)
    return lambda connection, after, limit: chunk(after, limit)


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


def landed_again(number: int) -> list[Fact]:
    """Facts after which every second of that many consumptions is stale, and every fourth was said to be too late."""
    facts: list[Fact] = []

    def at(event_id: int) -> datetime:
        return START + timedelta(seconds=event_id)

    for place in range(number):
        facts.append(
            FeedInstanceAvailable(len(facts) + 1, "primary", "raw", hour(place), "v1", at(len(facts)), late=False)
        )
        read = (Consumption("rows", "raw", hour(place), "v1"), Consumption("more", "other", hour(place), None))
        for state, consumed in ((InstanceState.RUNNING, ()), (InstanceState.SUCCEEDED, read)):
            event_id, run = len(facts) + 1, f"run-{place}"
            facts.append(InstanceChanged(event_id, "p", "primary", hour(place), state, at(event_id), run, "", consumed))
    for place in range(0, number, 2):
        event_id = len(facts) + 1
        facts.append(
            FeedInstanceAvailable(event_id, "primary", "raw", hour(place), "v2", at(event_id), late=place % 3 == 0)
        )
        if place % 4 == 0:
            facts.append(CameTooLate(event_id + 1, "p", "primary", hour(place), "raw", hour(place), "v2"))
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

    def waiting() -> bool:
        with engine.connect() as connection:
            return connection.execute(statement).scalar_one() == number

    wait_until(waiting, 20, f"{number} that wait")
