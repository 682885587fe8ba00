"""What decisions ask the ledger; each answer is one statement, whatever the number of entities."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TypeAlias

from sqlalchemy import ColumnElement, Connection, DateTime, Text, Values, and_, column, func, or_, select, values

from falcon_assets.ledger.fold import record_of
from falcon_assets.ledger.tables import COLLECTED, FEED_INSTANCES, PROCESS_INSTANCES, PROGRESS
from falcon_assets.ledger.upsert import upsert
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState

Name: TypeAlias = tuple[str, str]
"""An entity on a cluster: (cluster, feed) or (cluster, process)."""

_INSTANT = DateTime(timezone=True)


def available(connection: Connection, spans: Mapping[Name, tuple[datetime, datetime]]) -> dict[Name, set[datetime]]:
    """The available instances of feeds, each within its span (both ends included)."""
    if not spans:
        return {}
    asked = _asked(spans)
    table = FEED_INSTANCES.c
    statement = (
        select(table.cluster, table.feed, func.array_agg(table.instance))
        .join_from(asked, FEED_INSTANCES, _within(asked))
        .group_by(table.cluster, table.feed)
    )
    return {(cluster, feed): set(found) for cluster, feed, found in connection.execute(statement)}


def signatures(
    connection: Connection, spans: Mapping[Name, tuple[datetime, datetime]]
) -> dict[Name, dict[datetime, str | None]]:
    """The signatures of the available instances of feeds, each within its span (both ends included)."""
    if not spans:
        return {}
    asked = _asked(spans)
    table = FEED_INSTANCES.c
    statement = (
        select(table.cluster, table.feed, func.array_agg(table.instance), func.array_agg(table.signature))
        .join_from(asked, FEED_INSTANCES, _within(asked))
        .group_by(table.cluster, table.feed)
    )
    found = connection.execute(statement)
    return {(cluster, feed): dict(zip(*aggregated, strict=True)) for cluster, feed, *aggregated in found}


def records(
    connection: Connection, cluster: str, open_from: Mapping[str, datetime]
) -> dict[str, dict[datetime, InstanceRecord]]:
    """The records of processes on a cluster, each from an instance on, and all that are in flight before it."""
    if not open_from:
        return {}
    asked = values(column("process", Text), column("first", _INSTANT), name="asked").data(list(open_from.items()))
    table = PROCESS_INSTANCES.c
    in_flight = or_(table.queued_run.is_not(None), table.state == InstanceState.RUNNING.value)
    statement = select(PROCESS_INSTANCES).join_from(
        asked,
        PROCESS_INSTANCES,
        and_(
            table.cluster == cluster, table.process == asked.c.process, or_(table.nominal >= asked.c.first, in_flight)
        ),
    )
    found: dict[str, dict[datetime, InstanceRecord]] = {name: {} for name in open_from}
    for row in connection.execute(statement):
        found[row.process][row.nominal] = record_of(row)
    return found


def progress(connection: Connection, cluster: str) -> dict[tuple[str, str], datetime]:
    """(process, its timeline) -> the instance before which everything is settled, as the coordinators remember it."""
    table = PROGRESS.c
    statement = select(table.process, table.timeline, table.first_open).where(table.cluster == cluster)
    return {(process, timeline): first_open for process, timeline, first_open in connection.execute(statement)}


def set_progress(connection: Connection, cluster: str, first_open: Mapping[tuple[str, str], datetime]) -> None:
    """Remembers it."""
    rows = [
        {"process": process, "cluster": cluster, "timeline": timeline, "first_open": at}
        for (process, timeline), at in first_open.items()
    ]
    upsert(connection, PROGRESS, rows)


def looks(connection: Connection, cluster: str) -> dict[str, datetime]:
    """Feed -> when its collector last looked through all that was due."""
    statement = select(COLLECTED.c.feed, COLLECTED.c.looked_at).where(COLLECTED.c.cluster == cluster)
    return dict(connection.execute(statement).tuples().all())


def set_looks(connection: Connection, cluster: str, looked_at: Mapping[str, datetime]) -> None:
    """Remembers it."""
    upsert(
        connection, COLLECTED, [{"cluster": cluster, "feed": feed, "looked_at": at} for feed, at in looked_at.items()]
    )


def _asked(spans: Mapping[Name, tuple[datetime, datetime]]) -> Values:
    columns = (column("cluster", Text), column("feed", Text), column("first", _INSTANT), column("last", _INSTANT))
    return values(*columns, name="asked").data([(*name, *span) for name, span in spans.items()])


def _within(asked: Values) -> ColumnElement[bool]:
    table = FEED_INSTANCES.c
    return and_(
        table.cluster == asked.c.cluster,
        table.feed == asked.c.feed,
        table.instance.between(asked.c.first, asked.c.last),
    )


def counts(connection: Connection, run_id: str) -> dict[InstanceState, int]:
    """How many of the instances that a run has started are in which state."""
    table = PROCESS_INSTANCES.c
    statement = select(table.state, func.count()).where(table.run_id == run_id).group_by(table.state)
    return {InstanceState(state): count for state, count in connection.execute(statement).tuples()}
