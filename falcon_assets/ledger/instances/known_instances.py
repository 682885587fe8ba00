"""What is known about single instances, by their keys: a few statements, however many they are."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Connection, or_, select

from falcon_assets.ledger.folding.fold import record_of
from falcon_assets.ledger.instances.instance_pages import FEED_ROWS, Key
from falcon_assets.ledger.instances.process_rows import PROCESS_ROWS
from falcon_assets.ledger.instances.reruns import requests_at
from falcon_assets.ledger.tables import FEED_INSTANCES, OPEN, PROCESS_INSTANCES
from falcon_assets.planning.instances.instance_record import FeedState, InstanceRecord, InstanceState
from falcon_assets.planning.triage.known import KnownFeedInstance, KnownInstance


def known_feed_instances(connection: Connection, keys: Collection[Key]) -> dict[Key, KnownFeedInstance]:
    """Those of the feed instances that landed, or were made, at any time, and were not taken back."""
    found = FEED_ROWS.some(connection, keys)
    there = {key: row for key, row in found.items() if row.state is not FeedState.MISSING}
    return {key: KnownFeedInstance(row.state, row.evicted_at) for key, row in there.items()}


def known_instances(connection: Connection, keys: Collection[Key]) -> dict[Key, KnownInstance]:
    """Each of the instances; one that no run was given is WAITING."""
    records, requests = PROCESS_ROWS.some(connection, keys), requests_at(connection, keys)
    return {
        key: KnownInstance(records.get(key) or InstanceRecord(key[2], InstanceState.WAITING), requests.get(key))
        for key in keys
    }


def newest_available(connection: Connection, cluster: str, feed: str, until: datetime, number: int) -> list[datetime]:
    """The newest available instances of a feed up to a time, the newest first."""
    table = FEED_INSTANCES.c
    own = (table.cluster == cluster, table.feed == feed, table.state == FeedState.AVAILABLE.value)
    statement = select(table.instance).where(*own, table.instance <= until).order_by(table.instance.desc())
    return list(connection.execute(statement.limit(number)).scalars())


def begun_or_over(connection: Connection, process: str, cluster: str, first: datetime, last: datetime) -> set[datetime]:
    """The instances between two times that are in a run, or neither wait nor timed out."""
    table = PROCESS_INSTANCES.c
    own = (table.process == process, table.cluster == cluster, table.nominal.between(first, last))
    waits = table.state.in_([InstanceState.WAITING.value, InstanceState.TIMED_OUT.value])
    statement = select(table.nominal).where(*own, or_(table.queued_run.is_not(None), ~waits))
    return set(connection.execute(statement).scalars())


def in_flight(connection: Connection, process: str, cluster: str) -> list[InstanceRecord]:
    """The instances of a process that runs have in hand, oldest first."""
    table = PROCESS_INSTANCES.c
    begun = or_(table.queued_run.is_not(None), table.state == InstanceState.RUNNING.value)
    own = (table.process == process, table.cluster == cluster, OPEN, begun)
    rows = connection.execute(select(PROCESS_INSTANCES).where(*own).order_by(table.nominal))
    return [record_of(row) for row in rows]
