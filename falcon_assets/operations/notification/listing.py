"""What receivers are, were and could not be told."""

from __future__ import annotations

from typing import Any

from falcon_assets.errors import printable
from falcon_assets.ledger.notification import lists as notification_lists
from falcon_assets.ledger.notification.lists import NotificationRow, listed_notifications
from falcon_assets.ledger.notification.notifications import NotificationState
from falcon_assets.model.access import may_read
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.model.notification import Told
from falcon_assets.model.process import Process
from falcon_assets.operations.acting import acting
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.paging import Page, Query, known_field, require_values

FIELDS = dict.fromkeys(notification_lists.FIELDS)
"""What they can be filtered by."""
ORDERS = dict.fromkeys(notification_lists.ORDERS)
"""What they can be sorted by."""
_LEGAL = {
    "state": tuple(one.value for one in NotificationState),
    "event": tuple(one.value for one in Told),
    "kind": ("feed", "process"),
}


def list_notifications(installation: Installation, query: Query) -> Page[NotificationRow]:
    """What receivers are still to be told or could not be told, or what is asked for; the latest first.

    What is told of entities that the user of the operating system may not read is left out.

    Raises:
        QueryError: a field is not known, or has no such value.
    """
    if query.sort:
        known_field(query.sort.removeprefix("-"), ORDERS)
    wanted: dict[str, set[str]] = {}
    for field, value in query.filters:
        wanted.setdefault(known_field(field, FIELDS), set()).add(printable(value).casefold())
    require_values(query.filters, _LEGAL)
    who, entities = acting(installation.settings), installation.entities
    declared: list[Feed | Process] = [*entities.feeds.values(), *entities.processes.values()]
    names = {kind: [one.name for one in declared if one.kind == kind and may_read(one.acl, who)] for kind in _KINDS}
    with installation.tables.connect() as connection:
        found, total = listed_notifications(
            *(connection, names, wanted, query.sort or "-at"), query.offset, query.limit
        )
    end = query.offset + len(found)
    return Page(tuple(found), total, end if end < total else None)


_KINDS = ("feed", "process")


def notification_data(one: NotificationRow) -> dict[str, Any]:
    """A notification as ``--json`` prints it."""
    return {
        "state": one.state.value,
        "event": one.event,
        "kind": one.kind,
        "entity": one.entity,
        "cluster": one.cluster,
        "instance": format_instant(one.instance),
        "at": one.at.isoformat(),
        "reason": one.reason,
        "receiver": one.receiver,
        "message": one.message,
        "settled": one.settled_at and one.settled_at.isoformat(),
        "failures": one.failures,
        "problem": one.problem,
        "retry": one.retry_at and one.retry_at.isoformat(),
    }
