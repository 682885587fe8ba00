"""Histories in memory, what the ledger makes of them, and other processes that fold them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import cycle
from typing import Any

from sqlalchemy import Engine, Row, Table, create_engine, delete, select, text

from falcon_assets.history.events.event_log import Fact, Logged
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.history.events.inputs import Consumption
from falcon_assets.history.events.process_instances import CameTooLate, InstanceChanged
from falcon_assets.history.folding.fold import History
from falcon_assets.history.tables import METADATA, PROJECTION
from falcon_assets.planning.instance_record import InstanceState, LateChange
from tests.hours import START, hour
from tests.waiting import wait_until

Content = dict[str, list[Row[Any]]]
Chunk = tuple[Sequence[Logged], int | None, bool]


def ledger_engine(url: str) -> Engine:
    """Connects as the package does: instants are in UTC."""
    return create_engine(url, connect_args={"options": "-c timezone=utc"})


def chunks_of(facts: Sequence[Logged], sizes: Sequence[int]) -> Callable[[int, int], Chunk]:
    """Gives these facts, one event each: those after an event, no more at a time than the sizes say, in turn."""
    allowed = cycle(sizes)

    def chunk(after: int, limit: int) -> Chunk:
        found = [fact for fact in facts if fact.event_id > after][: min(limit, next(allowed))]
        last = found[-1].event_id if found else None
        return found, last, last is None or last == facts[-1].event_id

    return chunk


def history_of(facts: Sequence[Logged], sizes: Sequence[int] = (1000,)) -> History:
    """The history of these facts, in such chunks."""
    chunk = chunks_of(facts, sizes)
    return lambda connection, after, limit: chunk(after, limit)


def countable_facts(number: int) -> list[Logged]:
    """Facts that leave a trace each: every second one is a new version, every other one a failure of a new run."""
    facts: list[Logged] = []
    for event_id in range(1, number + 1):
        at, instance = START + timedelta(seconds=event_id), hour(event_id // 2 % 7)
        if event_id % 2:
            facts.append(Logged(event_id, FeedInstanceAvailable("primary", "raw", instance, f"v{event_id}", at)))
        else:
            failed = InstanceChanged("p", "primary", instance, InstanceState.FAILED, at, "no")
            facts.append(Logged(event_id, failed, f"run-{event_id}"))
    return facts


def landed_again(number: int) -> list[Logged]:
    """Facts after which every second of that many consumptions is stale, and every fourth was said to be too late."""
    facts: list[Logged] = []

    def say(fact: Fact, run_id: str | None = None) -> None:
        facts.append(Logged(len(facts) + 1, fact, run_id))

    def at() -> datetime:
        return START + timedelta(seconds=len(facts))

    for place in range(number):
        say(FeedInstanceAvailable("primary", "raw", hour(place), "v1", at()))
        read = {
            "rows": (Consumption("raw", hour(place), "v1"),),
            "more": (Consumption("other", hour(place), None),),
        }
        for state, inputs in ((InstanceState.RUNNING, None), (InstanceState.SUCCEEDED, read)):
            say(InstanceChanged("p", "primary", hour(place), state, at(), inputs=inputs), f"run-{place}")
    for place in range(0, number, 2):
        late = (LateChange("rows", "raw", hour(place), "v1", "v2"),) if place % 3 == 0 else ()
        say(FeedInstanceAvailable("primary", "raw", hour(place), "v2", at(), late=late))
        if place % 4 == 0:
            say(CameTooLate("p", "primary", hour(place), "raw", hour(place), "v2", at()))
    return facts


def content(engine: Engine) -> Content:
    """All columns of all rows of the projection."""
    with engine.connect() as connection:
        return {table.name: sorted(connection.execute(select(table)), key=repr) for table in PROJECTION}


def empty(engine: Engine, *but: Table) -> None:
    """Empties all tables but these; truncating them makes new files, which takes as long as a hundred deletions."""
    with engine.begin() as connection:
        for table in METADATA.tables.values():
            if table not in but:
                connection.execute(delete(table))


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
