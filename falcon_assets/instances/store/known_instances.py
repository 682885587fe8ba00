"""Single instances by their keys, and some short lists, in a fixed number of statements."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import TypeAlias

from sqlalchemy import Connection, Engine, func, or_, select

from falcon_assets.history.folding.fold import instance_of, record_of
from falcon_assets.history.queries import available
from falcon_assets.history.tables import FEED_INSTANCES, OPEN, PROCESS_INSTANCES
from falcon_assets.instances.store.instance_pages import FEED_ROWS, Key
from falcon_assets.instances.store.process_rows import PROCESS_ROWS
from falcon_assets.instances.store.reruns import requests_at
from falcon_assets.model.feed import Feed
from falcon_assets.planning.instance_record import (
    FeedState,
    InstanceRecord,
    InstanceState,
    KeyedInstance,
    KnownFeedInstance,
)
from falcon_assets.planning.retries import KnownInstance


def known_feed_instances(connection: Connection, keys: Collection[Key]) -> dict[Key, KnownFeedInstance]:
    """Instances that ever landed or were made, without withdrawn ones."""
    found = FEED_ROWS.some(connection, keys)
    there = {key: row for key, row in found.items() if row.state is not FeedState.MISSING}
    return {key: KnownFeedInstance(row.state, row.evicted_at) for key, row in there.items()}


Recorded: TypeAlias = Callable[[Feed, Sequence[datetime]], Collection[datetime]]
"""Returns the instances of a feed, among some, that a reader may take if their store has them: those in the ledger if
it is :attr:`taken by record <falcon_assets.model.feed.Feed.is_taken_by_record>`, else all."""


def all_recorded(feed: Feed, instances: Sequence[datetime]) -> Collection[datetime]:
    """For callers without a ledger."""
    return instances


def recorded_on(engine: Engine, cluster: str) -> Recorded:

    def recorded(feed: Feed, instances: Sequence[datetime]) -> Collection[datetime]:
        if not feed.is_taken_by_record or not instances:
            return instances
        place = (cluster, feed.name)
        with engine.connect() as connection:
            return available(connection, {place: (min(instances), max(instances))}).get(place, set())

    return recorded


def known_instances(connection: Connection, keys: Collection[Key]) -> dict[Key, KnownInstance]:
    """An instance without a row is WAITING."""
    records, requests = PROCESS_ROWS.some(connection, keys), requests_at(connection, keys)
    return {
        key: KnownInstance(records.get(key) or InstanceRecord(key[2], InstanceState.WAITING), requests.get(key))
        for key in keys
    }


def newest_available(connection: Connection, cluster: str, feed: str, until: datetime, number: int) -> list[datetime]:
    table = FEED_INSTANCES.c
    own = (table.cluster == cluster, table.feed == feed, table.state == FeedState.AVAILABLE.value)
    statement = select(table.instance).where(*own, table.instance <= until).order_by(table.instance.desc())
    return list(connection.execute(statement.limit(number)).scalars())


def begun_or_over(connection: Connection, process: str, cluster: str, first: datetime, last: datetime) -> set[datetime]:
    """Instances in a run, or in a state other than WAITING and TIMED_OUT."""
    table = PROCESS_INSTANCES.c
    own = (table.process == process, table.cluster == cluster, table.nominal.between(first, last))
    waits = table.state.in_([InstanceState.WAITING.value, InstanceState.TIMED_OUT.value])
    statement = select(table.nominal).where(*own, or_(table.queued_run.is_not(None), ~waits))
    return set(connection.execute(statement).scalars())


def in_flight(connection: Connection, process: str, cluster: str) -> list[InstanceRecord]:
    table = PROCESS_INSTANCES.c
    begun = or_(table.queued_run.is_not(None), table.state == InstanceState.RUNNING.value)
    own = (table.process == process, table.cluster == cluster, OPEN, begun)
    rows = connection.execute(select(PROCESS_INSTANCES).where(*own).order_by(table.nominal))
    return [record_of(row) for row in rows]


ENDS = (InstanceState.SUCCEEDED, InstanceState.FAILED, InstanceState.TIMED_OUT, InstanceState.KILLED)
_AT_ONCE = 10_000


def newest_event(connection: Connection) -> int:
    """0: none."""
    return int(connection.execute(select(func.coalesce(func.max(PROCESS_INSTANCES.c.event_id), 0))).scalar_one())


def ended_since(connection: Connection, event_id: int) -> list[KeyedInstance]:
    """Oldest first, without those that are in a run again; at most 10,000."""
    table = PROCESS_INSTANCES.c
    found = connection.execute(
        select(PROCESS_INSTANCES)
        .where(table.event_id > event_id, table.queued_run.is_(None), table.state.in_([one.value for one in ENDS]))
        .order_by(table.event_id, table.process, table.cluster, table.nominal)
        .limit(_AT_ONCE)
    )
    return [instance_of(row) for row in found]
