"""Operations on published events: those that there are, and those that come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import and_, or_, select

from falcon_assets.features.messaging.cloud_events import cloud_event
from falcon_assets.features.messaging.publishing import RECEIVER
from falcon_assets.history.events.instance_event import EXECUTOR
from falcon_assets.history.tables import NOTIFICATIONS
from falcon_assets.instances.outbox.store import notice_of
from falcon_assets.model.access import may_read
from falcon_assets.model.event_kind import EventKind
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process
from falcon_assets.operations.acting import acting
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Given, Operation, Result
from falcon_assets.operations.paging import MOST

_TABLE = NOTIFICATIONS.c


@dataclass(frozen=True)
class PublishedEvent(Result):
    """An event, and whether its broker has it: PENDING, SENDING, SENT or GIVEN_UP; ``number`` is the order."""

    number: int
    state: str
    event: Mapping[str, Any]


@dataclass(frozen=True)
class PublishedEvents(Result):
    """The newest events, in their order; ``last`` is the number of the last one, after which later ones are."""

    items: tuple[PublishedEvent, ...]
    last: int


class TailEvents(Operation):
    """Show the newest events that clusters publish: of the last week, and those that wait for their broker.

    An event is shown as soon as Dagster's daemon has recorded it, and only where its cluster has interfaces.messaging.
    """

    command = "events tail"
    entity: tuple[str, ...] = Field((), description="Only events of this feed or process; may be repeated.")
    kind: Annotated[tuple[EventKind, ...], Given(metavar="TRANSITION")] = Field(
        (), description="Only events of this transition, such as LANDED; may be repeated."
    )
    cluster: tuple[str, ...] = Field((), description="Only events on this cluster; may be repeated.")
    limit: Annotated[int, Given(flags=("-n", "--limit"), shows_default=True)] = Field(
        10, ge=1, le=MOST, description="Maximum number of events."
    )
    after: Annotated[int, Given(programs_only=True)] = 0

    def run(self, installation: Installation) -> PublishedEvents:
        """With ``after``, gives the oldest events with higher numbers."""
        who, entities = acting(installation.settings), installation.entities
        declared: list[Feed | Process] = [*entities.feeds.values(), *entities.processes.values()]
        mine: dict[str, list[str]] = {"feed": [], "process": [], EXECUTOR: []}
        for one in declared:
            if may_read(one.acl, who) and one.name in (self.entity or (one.name,)):
                mine[one.kind].append(one.name)
        for cluster in entities.clusters.values():
            names = [one.name for one in cluster.executors if one.name in (self.entity or (one.name,))]
            mine[EXECUTOR] += names if may_read(cluster.acl, who) else []
        conditions = [
            _TABLE.receiver.startswith(RECEIVER, autoescape=True),
            _TABLE.id > self.after,
            or_(*(and_(_TABLE.kind == kind, _TABLE.entity.in_(names)) for kind, names in mine.items())),
        ]
        if self.kind:
            conditions.append(_TABLE.event.in_([one.value for one in self.kind]))
        if self.cluster:
            conditions.append(_TABLE.cluster.in_(self.cluster))
        order = _TABLE.id if self.after else _TABLE.id.desc()
        asked = select(NOTIFICATIONS).where(*conditions).order_by(order).limit(self.limit)
        with installation.tables.connect() as connection:
            found = sorted(map(_event, connection.execute(asked)), key=lambda one: one.number)
        return PublishedEvents(tuple(found), found[-1].number if found else self.after)


def _event(row: Any) -> PublishedEvent:
    return PublishedEvent(row.id, row.state, cloud_event(notice_of(row)).attributes)
