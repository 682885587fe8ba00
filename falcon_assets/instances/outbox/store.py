"""Storage of the outbox: events with their receivers, the messages, and the state of receivers."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from datetime import datetime
from enum import Enum
from typing import Any

from sqlalchemy import Connection, delete, func, select, text, tuple_, update
from sqlalchemy.dialects.postgresql import insert

from falcon_assets.history.database import upsert
from falcon_assets.history.events.instance_event import InstanceEvent, Notice
from falcon_assets.history.tables import NOTIFICATION_RECEIVERS, NOTIFICATIONS
from falcon_assets.instances.outbox.rules import GIVEN_UP_AFTER, KEPT_FOR, URGENT, WaitingReceiver, retry_after
from falcon_assets.model.event_kind import EventKind

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
    return message, [*map(notice_of, connection.execute(found))]


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


def notice_of(row: Any) -> Notice:
    about = (EventKind(row.event), row.kind, row.entity, row.cluster, row.instance, row.at, row.key, row.reason)
    return Notice(row.receiver, row.kind, row.entity, InstanceEvent(*about, run=row.run))
