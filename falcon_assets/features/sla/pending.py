"""The operation that lists imminent breaches of SLAs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from falcon_assets.entities.status import Status, statuses
from falcon_assets.features.sla.readable_deadlines import readable_deadlines
from falcon_assets.features.sla.rules import UNKNOWN, Deadline, announced
from falcon_assets.features.sla.store import JudgedSpan, known_in
from falcon_assets.model.instant import Instant, format_instant
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Result
from falcon_assets.operations.paging import Fields, ListOperation, Page, select


@dataclass(frozen=True)
class PendingBreach(Result):
    """A breach that happens unless the instance is in time; ``left`` is the time until then."""

    deadline: Deadline
    instance: Instant
    left: timedelta
    keys = (
        *(f"{name}=deadline.{name}" for name in ("kind", "entity", "cluster")),
        *("instance", "level=deadline.level", "severity=deadline.level.severity", "deadline=at", "left_seconds"),
    )

    @property
    def at(self) -> datetime:
        return self.deadline.of(self.instance)

    @property
    def left_seconds(self) -> int:
        return int(self.left.total_seconds())


FIELDS: Fields[PendingBreach] = {
    "deadline": lambda one: [one.at.isoformat()],
    "instance": lambda one: [format_instant(one.instance)],
    "kind": lambda one: [one.deadline.kind],
    "entity": lambda one: [one.deadline.entity],
    "cluster": lambda one: [one.deadline.cluster],
    "level": lambda one: [one.deadline.level.value],
    "severity": lambda one: [one.deadline.level.severity],
}


class ListPending(ListOperation):
    """List instances that are about to breach their SLA, the most urgent first.

    A breach of the first level (low, should_start_in) is pending during the 15 minutes before it; a breach of the
    second level (high, should_end_in) is pending from the time of the first level on.
    """

    command = "sla pending"
    page = ""
    fields = FIELDS

    def run(self, installation: Installation) -> Page[PendingBreach]:
        entities, now = installation.entities, installation.settings.now()
        installation.ledger.catch_up_to_read()
        with installation.ledger.engine.begin() as connection:
            status = statuses(connection, [*entities.feeds.values(), *entities.processes.values()], now)
            running = [
                one for one in readable_deadlines(installation) if status[one.declared_by].status is Status.RUNNING
            ]
            soon = [(one, indexes) for one in running if (indexes := announced(one, now))]
            spans = [
                JudgedSpan(one.key, one.timeline.instance(indexes[0]), one.timeline.instance(indexes[-1]))
                for one, indexes in soon
            ]
            known = known_in(connection, spans)
        found = []
        for one, indexes in soon:
            there = known.get(one.key, {})
            for instance in dict.fromkeys(map(one.timeline.instance, indexes)):
                what = there.get(instance, UNKNOWN)
                if what.expected and what.met_at(one.level) is None:
                    found.append(PendingBreach(one, instance, one.of(instance) - now))
        found.sort(key=lambda one: (one.at, one.instance, one.deadline.key))
        return select(found, self.query, FIELDS)
