"""Operations on notifications: the list, and a test message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from falcon_assets.errors import SettingsError, UnknownEntityError, printable
from falcon_assets.features.notification import lists as notification_lists
from falcon_assets.features.notification.delivery import send
from falcon_assets.features.notification.lists import NotificationRow, listed_notifications
from falcon_assets.features.notification.rules import Message
from falcon_assets.history.events.instance_event import EXECUTOR
from falcon_assets.instances.outbox.store import NotificationState
from falcon_assets.model.access import Role, may_read
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.event_kind import EventKind
from falcon_assets.model.expression import nearest
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process
from falcon_assets.operations.acting import acting
from falcon_assets.operations.audit import require_readable
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Given, Operation, Result
from falcon_assets.operations.paging import ListOperation, Page, known_field, require_values

FIELDS = dict.fromkeys(notification_lists.FIELDS)
ORDERS = dict.fromkeys(notification_lists.ORDERS)
_LEGAL = {
    "state": tuple(one.value for one in NotificationState),
    "event": tuple(one.value for one in EventKind),
    "kind": ("feed", "process", EXECUTOR),
}


_KINDS = ("feed", "process")


class ListNotifications(ListOperation):
    """List pending and undelivered notifications, the latest first.

    PENDING: part of the next message. SENDING: being sent. GIVEN_UP: could not be delivered for three days. Use
    --filter state=SENT for those delivered in the last week, and --filter message=KEY for those in one message.

    A receiver is shown by the name of the environment variable that holds its URL, or by the place where that is
    encrypted.
    """

    command = "notification list"
    fields = FIELDS
    orders = ORDERS

    def run(self, installation: Installation) -> Page[NotificationRow]:
        query = self.query
        if query.sort:
            known_field(query.sort.removeprefix("-"), ORDERS)
        wanted: dict[str, set[str]] = {}
        for field, value in query.filters:
            wanted.setdefault(known_field(field, FIELDS), set()).add(printable(value).casefold())
        require_values(query.filters, _LEGAL)
        who, entities = acting(installation.settings), installation.entities
        declared: list[Feed | Process] = [*entities.feeds.values(), *entities.processes.values()]
        names = {kind: [one.name for one in declared if one.kind == kind and may_read(one.acl, who)] for kind in _KINDS}
        readable = [one for one in entities.clusters.values() if may_read(one.acl, who)]
        names[EXECUTOR] = [one.name for cluster in readable for one in cluster.executors]
        with installation.tables.connect() as connection:
            found, total = listed_notifications(
                *(connection, names, wanted, query.sort or "-at"), query.offset, query.limit
            )
        end = query.offset + len(found)
        return Page(tuple(found), total, end if end < total else None)


@dataclass(frozen=True)
class TriedReceivers(Result):
    """``problems``: the variable or place with the URL -> why it failed, "" where it did not."""

    problems: Mapping[str, str]

    @property
    def failed(self) -> bool:
        return any(self.problems.values())


class SendTest(Operation):
    """Send a test message to the receivers of ENTITY, a feed, process or cluster.

    The URLs are read from the environment of this command, which may differ from that of Dagster's daemon. The exit
    code is 1 where a message could not be delivered.
    """

    command = "notification test"
    role = Role.EDITOR
    entity: Annotated[str, Given("ENTITY")]

    def run(self, installation: Installation) -> TriedReceivers:
        """Records nothing.

        Raises:
            UnknownEntityError: there is none of that name.
            SettingsError: it has no notification.
            DeniedError: the user may not read it.
        """
        entity = _entity(installation, self.entity)
        require_readable(installation, "notification test", [entity])
        settings = installation.settings
        notification = entity.notification or settings.notification
        if notification is None:
            raise SettingsError(
                f"nobody is notified of {entity.kind} {entity.name!r}: declare its notification, or set "
                "FALCON_NOTIFICATION_TO"
            )
        events = ", ".join(one.value for one in notification.on)
        said = f"This is a test. You are notified of {entity.kind} {entity.name}: {events}."
        message = Message("test", f"falcon: a test for {entity.kind} {entity.name}", said)
        urls = {receiver.url.label: receiver.url for receiver in notification.to}
        return TriedReceivers({label: send(url, settings.environ, message) for label, url in urls.items()})


def _entity(installation: Installation, name: str) -> Feed | Process | Cluster:
    entities = installation.entities
    found = entities.processes.get(name) or entities.feeds.get(name) or entities.clusters.get(name)
    if found is None:
        known = [*entities.feeds, *entities.processes, *entities.clusters]
        raise UnknownEntityError(f"there is no feed, process or cluster {name!r}{nearest(name, known)}")
    return found
