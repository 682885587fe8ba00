"""Paged lists of notifications, filtered and sorted by the database."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select

from falcon_assets.history.tables import NOTIFICATION_RECEIVERS, NOTIFICATIONS
from falcon_assets.instances.outbox.store import NotificationState
from falcon_assets.model.instant import Instant
from falcon_assets.operations.operation import Result

_TABLE, _RECEIVERS = NOTIFICATIONS.c, NOTIFICATION_RECEIVERS.c
_COLUMNS: Mapping[str, ColumnElement[Any]] = {
    name: _TABLE[name] for name in ("state", "event", "kind", "entity", "cluster", "instance", "receiver", "message")
}
FIELDS = tuple(name for name in _COLUMNS if name != "instance")
ORDERS = ("at", *_COLUMNS)
"""``at`` is the order of arrival."""


@dataclass(frozen=True)
class NotificationRow(Result):
    """A notification and the state of its receiver; ``at`` is on the falcon clock, ``settled_at`` in real time.

    Attributes:
        receiver: The variable with the URL.
        message: The key of its message; None: none yet.
        problem: The last failure; empty: none.
    """

    receiver: str
    event: str
    kind: str
    entity: str
    cluster: str
    instance: Instant
    at: datetime
    reason: str
    state: NotificationState
    message: str | None
    settled_at: datetime | None
    failures: int
    problem: str
    retry_at: datetime | None
    keys = (
        *("state", "event", "kind", "entity", "cluster", "instance", "at", "reason", "receiver", "message"),
        *("settled=settled_at", "failures", "problem", "retry=retry_at"),
    )


def listed_notifications(
    connection: Connection,
    entities: Mapping[str, Collection[str]],
    wanted: Mapping[str, Collection[str]],
    sort: str,
    offset: int,
    limit: int | None,
) -> tuple[list[NotificationRow], int]:
    """Returns a part of the notifications, and the number in all parts.

    ``entities`` are kind -> names, no others are listed; ``wanted`` is field -> lower-case texts, one of which must
    fit. Without ``state`` and ``message`` in it, SENT is left out. '-' before ``sort`` is descending.
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
