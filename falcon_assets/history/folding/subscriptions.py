"""Subscriptions to events of instances, and the events that are kept until their receivers are determined."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.postgresql import insert

from falcon_assets.history.database import among, of_row, parts, upsert
from falcon_assets.history.events.instance_event import InstanceEvent
from falcon_assets.history.tables import FOLD, NOTIFICATION_EVENTS, NOTIFIED
from falcon_assets.model.event_kind import EventKind

Subject: TypeAlias = tuple[str, str, str]
"""Kind (``process`` of processes and replications, ``feed``, or ``cluster``: all of its instances), name, cluster."""

_SEEN_EVERY, _STALE_AFTER = timedelta(hours=1), timedelta(days=3)
_SUBJECT = (NOTIFIED.c.kind, NOTIFIED.c.name, NOTIFIED.c.cluster)


def whole(cluster: str) -> Subject:
    return "cluster", cluster, cluster


def keep_wanted(connection: Connection, happened: Sequence[InstanceEvent]) -> None:
    """Keeps those of new events that are subscribed to, in the transaction that makes them history."""
    declared: dict[Subject, Any] = {}
    subjects = {(one.kind, one.name, one.cluster) for one in happened}
    for part in parts(subjects | {whole(one.cluster) for one in happened}):
        for row in connection.execute(select(NOTIFIED).where(among(_SUBJECT, part))):
            declared[row.kind, row.name, row.cluster] = row
    rows = []
    for one in happened:
        of_both = (declared.get((one.kind, one.name, one.cluster)), declared.get(whole(one.cluster)))
        if any(wanted is not None and _is_wanted(one, wanted) for wanted in of_both):
            rows.append({**asdict(one), "event": one.event.value, "key": one.key})
    if rows:
        connection.execute(insert(NOTIFICATION_EVENTS).on_conflict_do_nothing(), rows)


def _is_wanted(one: InstanceEvent, wanted: Any) -> bool:
    is_new = one.event_id is None or one.event_id > wanted.since_event
    return is_new and one.event.value in wanted.events


def listen(
    connection: Connection,
    clusters: Collection[str],
    wanted: Mapping[Subject, Collection[EventKind]],
    real_now: datetime,
    now: datetime,
) -> None:
    """Keeps the ``wanted`` events of these clusters from now on, no others, and none of the past.

    Subjects not wanted for days start anew: their sensor was off, or they were not declared.
    """
    known = {
        (row.kind, row.name, row.cluster): row
        for row in connection.execute(select(NOTIFIED).where(NOTIFIED.c.cluster.in_(clusters)))
    }
    for part in parts([key for key in known if key not in wanted]):
        connection.execute(delete(NOTIFIED).where(among(_SUBJECT, part)))
    folded = connection.execute(select(FOLD.c.event_id)).scalar() or 0
    rows = []
    for key, events in wanted.items():
        row, names = known.get(key), sorted(one.value for one in events)
        age = abs(real_now - row.seen_at) if row is not None else _STALE_AFTER  # the clock may be set back
        since_event, since = (folded, now) if row is None or age >= _STALE_AFTER else (row.since_event, row.since)
        if row is not None and EventKind.SLA.value in set(names) - set(row.events):
            since = now
        if row is None or row.events != names or age > _SEEN_EVERY:
            mine = dict(zip(("kind", "name", "cluster"), key, strict=True))
            rows.append({**mine, "events": names, "since_event": since_event, "since": since, "seen_at": real_now})
    upsert(connection, NOTIFIED, rows)


def begin_to_listen(
    connection: Connection, wanted: Mapping[Subject, Collection[EventKind]], real_now: datetime, now: datetime
) -> None:
    """As :func:`listen`, only for subjects without a subscription."""
    folded = connection.execute(select(FOLD.c.event_id)).scalar() or 0
    since = {"since_event": folded, "since": now, "seen_at": real_now}
    rows = [
        {"kind": kind, "name": name, "cluster": cluster, "events": sorted(one.value for one in events), **since}
        for (kind, name, cluster), events in wanted.items()
    ]
    if rows:
        connection.execute(insert(NOTIFIED).on_conflict_do_nothing(), rows)


def take(connection: Connection, clusters: Collection[str], limit: int) -> list[InstanceEvent]:
    """Removes and returns the oldest events on these clusters."""
    table = NOTIFICATION_EVENTS.c
    oldest = select(table.id).where(table.cluster.in_(clusters)).order_by(table.id).limit(limit)
    gone = delete(NOTIFICATION_EVENTS).where(table.id.in_(oldest.scalar_subquery())).returning(NOTIFICATION_EVENTS)
    rows = sorted(connection.execute(gone), key=lambda row: row.id)
    return [of_row(InstanceEvent, row, event=EventKind(row.event)) for row in rows]
