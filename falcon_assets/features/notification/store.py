"""Storage of notifications: events with receivers, the messages, and the state of receivers."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, TypeAlias

from sqlalchemy import Connection, delete, func, select, text, tuple_, update
from sqlalchemy.dialects.postgresql import insert

from falcon_assets.features.notification.rules import GIVEN_UP_AFTER, KEPT_FOR, URGENT, WaitingReceiver, retry_after
from falcon_assets.history.database import among, of_row, parts, upsert
from falcon_assets.history.events.instance_event import InstanceEvent, Notice
from falcon_assets.history.tables import FOLD, NOTIFICATION_EVENTS, NOTIFICATION_RECEIVERS, NOTIFICATIONS, NOTIFIED
from falcon_assets.model.event_kind import EventKind

Subject: TypeAlias = tuple[str, str, str]
"""Kind (``process`` of processes and replications, ``feed``, or ``cluster``: all of its instances), name, cluster."""

_SEEN_EVERY, _STALE_AFTER = timedelta(hours=1), timedelta(days=3)
_SUBJECT = (NOTIFIED.c.kind, NOTIFIED.c.name, NOTIFIED.c.cluster)


def whole(cluster: str) -> Subject:
    return "cluster", cluster, cluster


def note(connection: Connection, happened: Sequence[InstanceEvent]) -> None:
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
    return [_happening(row) for row in sorted(connection.execute(gone), key=lambda row: row.id)]


def _happening(row: Any) -> InstanceEvent:
    return of_row(InstanceEvent, row, event=EventKind(row.event))


_TABLE, _RECEIVERS = NOTIFICATIONS.c, NOTIFICATION_RECEIVERS.c
_IS_OPEN = text("notifications.state IN ('PENDING', 'SENDING')")  # as the index says it
_DELETED_AT_ONCE = 10_000


class NotificationState(str, Enum):
    PENDING = "PENDING"
    SENDING = "SENDING"
    """Part of a message that is being sent, or whose delivery is not known after a kill."""
    SENT = "SENT"
    GIVEN_UP = "GIVEN_UP"
    """The receiver failed for days."""


def add(connection: Connection, notices: Sequence[Notice], now: datetime) -> int:
    """Records notices, each once; returns the number of notices."""
    rows = [
        {
            "receiver": one.receiver,
            "key": one.happening.key,
            "event": one.happening.event.value,
            "kind": one.kind,
            "entity": one.entity,
            "cluster": one.happening.cluster,
            "instance": one.happening.instance,
            "at": one.happening.at,
            "reason": one.happening.reason,
            "run": one.happening.run,
            "state": NotificationState.PENDING.value,
            "noted_at": now,
        }
        for one in notices
    ]
    if rows:
        connection.execute(insert(NOTIFICATIONS).on_conflict_do_nothing(), rows)
    return len(rows)


def waiting(connection: Connection, clusters: Collection[str]) -> list[WaitingReceiver]:
    """Returns receivers with waiting events, the longest waiting first."""
    urgent = [one.value for one in URGENT]
    statement = (
        select(
            _TABLE.receiver,
            func.min(_TABLE.noted_at).label("oldest"),
            func.bool_or(_TABLE.event.in_(urgent)).label("is_urgent"),
            func.bool_or(_TABLE.state == NotificationState.SENDING.value).label("is_interrupted"),
            func.max(_RECEIVERS.sent_at).label("sent_at"),
            func.max(_RECEIVERS.retry_at).label("retry_at"),
        )
        .outerjoin(NOTIFICATION_RECEIVERS, _RECEIVERS.receiver == _TABLE.receiver)
        .where(_TABLE.cluster.in_(clusters), _IS_OPEN)
        .group_by(_TABLE.receiver)
        .order_by(func.min(_TABLE.noted_at), _TABLE.receiver)
    )
    return [WaitingReceiver(**row._mapping) for row in connection.execute(statement)]


def waiting_events(connection: Connection, clusters: Collection[str]) -> dict[str, int]:
    """Returns receiver -> the number of events that wait for it."""
    own = select(_TABLE.receiver, func.count()).where(_IS_OPEN, _TABLE.cluster.in_(clusters))
    return {row[0]: row[1] for row in connection.execute(own.group_by(_TABLE.receiver))}


def begin(connection: Connection, receiver: str, clusters: Collection[str], limit: int) -> tuple[str, list[Notice]]:
    """Begins a message: returns its key and events. One that was begun and not ended is begun again, with the same key.

    Must be called under the lock of the receiver, and followed by :func:`end`.
    """
    mine = (_TABLE.receiver == receiver, _TABLE.cluster.in_(clusters), _IS_OPEN)
    begun = select(_TABLE.message).where(*mine, _TABLE.state == NotificationState.SENDING.value).limit(1)
    message = connection.execute(begun).scalar()
    if message is None:
        pending = select(_TABLE.id).where(*mine).order_by(_TABLE.id).limit(limit)
        ids = list(connection.execute(pending).scalars())
        if not ids:
            return "", []
        message = hashlib.blake2b(f"{receiver} {ids}".encode(), digest_size=6).hexdigest()
        values = {"state": NotificationState.SENDING.value, "message": message}
        connection.execute(update(NOTIFICATIONS).values(values).where(_TABLE.id.in_(ids)))
    found = select(NOTIFICATIONS).where(*mine, _TABLE.message == message).order_by(_TABLE.id)
    return message, [_notice(row) for row in connection.execute(found)]


def end(connection: Connection, receiver: str, message: str, problem: str, now: datetime) -> datetime | None:
    """Ends a message; after a ``problem`` its events wait on for the returned time, and join later ones."""
    own = (_TABLE.receiver == receiver, _TABLE.message == message, _TABLE.state == NotificationState.SENDING.value)
    if not problem:
        sent = {"state": NotificationState.SENT.value, "settled_at": now}
        connection.execute(update(NOTIFICATIONS).values(sent).where(*own))
        row = {"receiver": receiver, "failures": 0, "problem": "", "sent_at": now, "retry_at": None}
        upsert(connection, NOTIFICATION_RECEIVERS, [row])
        return None
    connection.execute(update(NOTIFICATIONS).values(state=NotificationState.PENDING.value, message=None).where(*own))
    known = connection.execute(select(NOTIFICATION_RECEIVERS).where(_RECEIVERS.receiver == receiver)).first()
    failures = (known.failures if known else 0) + 1
    retry_at = now + retry_after(failures)
    state = {"failures": failures, "problem": problem, "sent_at": known and known.sent_at, "retry_at": retry_at}
    upsert(connection, NOTIFICATION_RECEIVERS, [{"receiver": receiver, **state}])
    return retry_at


def settle(connection: Connection, notices: Sequence[Notice], state: NotificationState, now: datetime) -> None:
    """Settles a part of a begun message: the receiver took it, or never will."""
    gone = {"state": state.value, "settled_at": now}
    own = [(one.receiver, one.happening.source) for one in notices]  # which is the key of one that was begun
    connection.execute(update(NOTIFICATIONS).values(gone).where(tuple_(_TABLE.receiver, _TABLE.key).in_(own)))


def clean_up(connection: Connection, clusters: Collection[str], lasting: Collection[str], now: datetime) -> int:
    """Gives up events undelivered for days, and deletes old settled ones; returns the number given up.

    ``lasting`` are receivers whose events are not given up.
    """
    is_old = _TABLE.noted_at < now - GIVEN_UP_AFTER
    old = (_TABLE.cluster.in_(clusters), _IS_OPEN, is_old, _TABLE.receiver.not_in(lasting))
    gone = {"state": NotificationState.GIVEN_UP.value, "settled_at": now}
    given_up = connection.execute(update(NOTIFICATIONS).values(gone).where(*old)).rowcount
    settled = select(_TABLE.id).where(_TABLE.settled_at < now - KEPT_FOR).limit(_DELETED_AT_ONCE)
    connection.execute(delete(NOTIFICATIONS).where(_TABLE.id.in_(settled.scalar_subquery())))
    return given_up


def _notice(row: Any) -> Notice:
    about = (EventKind(row.event), row.kind, row.entity, row.cluster, row.instance, row.at, row.key, row.reason)
    return Notice(row.receiver, row.kind, row.entity, InstanceEvent(*about, run=row.run))
