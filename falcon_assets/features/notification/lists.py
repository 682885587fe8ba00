"""Parts of the list of notifications, in the database: there may be many."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select

from falcon_assets.features.notification.store import NotificationState
from falcon_assets.history.tables import NOTIFICATION_RECEIVERS, NOTIFICATIONS

_TABLE, _RECEIVERS = NOTIFICATIONS.c, NOTIFICATION_RECEIVERS.c
_COLUMNS: Mapping[str, ColumnElement[Any]] = {
    name: _TABLE[name] for name in ("state", "event", "kind", "entity", "cluster", "instance", "receiver", "message")
}
FIELDS = tuple(name for name in _COLUMNS if name != "instance")
"""What they can be filtered by."""
ORDERS = ("at", *_COLUMNS)
"""What they can be sorted by; ``at``: as they came."""


@dataclass(frozen=True)
class NotificationRow:
    """An event that a receiver is, was or could not be told.

    Attributes:
        receiver: Name of the environment variable with the URL.
        event: What.
        kind: ``feed`` or ``process``.
        entity: Of which.
        cluster: Where.
        instance: Which instance.
        at: When, on the falcon clock.
        reason: Why, in plain words.
        state: What has become of it.
        message: The message that tells it; None: none yet.
        settled_at: SENT, GIVEN_UP: when, in real time.
        failures: How often in a row the receiver could not be told anything.
        problem: Why it could not be told last; empty: it could.
        retry_at: When that is tried again.
    """

    receiver: str
    event: str
    kind: str
    entity: str
    cluster: str
    instance: datetime
    at: datetime
    reason: str
    state: NotificationState
    message: str | None
    settled_at: datetime | None
    failures: int
    problem: str
    retry_at: datetime | None


def listed_notifications(
    connection: Connection,
    entities: Mapping[str, Collection[str]],
    wanted: Mapping[str, Collection[str]],
    sort: str,
    offset: int,
    limit: int | None,
) -> tuple[list[NotificationRow], int]:
    """A part of the notifications, and how many there are in all parts.

    Args:
        connection: The database.
        entities: Kind -> names; no others are listed.
        wanted: Field -> texts in lower case of which it has one; without ``state`` and ``message`` what is not SENT.
        sort: A field; with a '-' in front the other way round.
        offset: How many are left out at the beginning.
        limit: How many at most; None: all.
    """
    names = [and_(_TABLE.kind == kind, _TABLE.entity.in_(own)) for kind, own in entities.items()]
    conditions = [or_(*names), *(func.lower(_COLUMNS[field]).in_(values) for field, values in wanted.items())]
    if "state" not in wanted and "message" not in wanted:
        conditions.append(_TABLE.state != NotificationState.SENT.value)
    order = _COLUMNS.get(sort.removeprefix("-"), _TABLE.id)
    open_only = _TABLE.state.in_((NotificationState.PENDING.value, NotificationState.SENDING.value))
    statement = (
        select(NOTIFICATIONS, _RECEIVERS.failures, _RECEIVERS.problem, _RECEIVERS.retry_at)
        .outerjoin(NOTIFICATION_RECEIVERS, and_(_RECEIVERS.receiver == _TABLE.receiver, open_only))
        .where(*conditions)
        .order_by(order.desc() if sort.startswith("-") else order, _TABLE.id)
        .offset(offset)
        .limit(limit)
    )
    total = connection.execute(select(func.count()).select_from(NOTIFICATIONS).where(*conditions)).scalar_one()
    return [_row(row) for row in connection.execute(statement)], total


def _row(row: Any) -> NotificationRow:
    about = (row.receiver, row.event, row.kind, row.entity, row.cluster, row.instance, row.at, row.reason)
    how = (row.message, row.settled_at, row.failures or 0, row.problem or "", row.retry_at)
    return NotificationRow(*about, NotificationState(row.state), *how)
