"""Lists of breaches of SLAs: recorded, and imminent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from falcon_assets.errors import QueryError, printable
from falcon_assets.features.sla.lists import BreachRow, last_evaluations, listed_breaches
from falcon_assets.features.sla.pending import FIELDS as PENDING_FIELDS
from falcon_assets.features.sla.pending import PendingBreach, sla_pending
from falcon_assets.features.sla.readable_deadlines import readable_deadlines
from falcon_assets.features.sla.store import BreachState
from falcon_assets.model.sla import SlaLevel
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.paging import ListOperation, Page, Query, known_field

FIELDS = dict.fromkeys(("kind", "entity", "cluster", "level", "severity", "state"))
ORDERS = dict.fromkeys(("deadline", "instance", *FIELDS))
_LEGAL = {
    "kind": ("feed", "process"),
    "level": tuple(one.value for one in SlaLevel),
    "severity": ("WARN", "ERROR"),
    "state": tuple(one.value for one in BreachState),
}


@dataclass(frozen=True)
class SlaAlerts(Page[BreachRow]):
    """A part of the breaches; ``evaluated`` is cluster -> last evaluation on the falcon clock, None: never."""

    evaluated: Mapping[str, datetime | None]


class ListAlerts(ListOperation):
    """List the breaches that are open, the newest first.

    WARN: the first level of the SLA is breached (low, should_start_in). ERROR: the SLA is missed (high, should_end_in).

    With --filter state=MET those that came late, with --filter state=WITHDRAWN those that nobody expects any more.
    """

    command = "sla alerts"
    fields = FIELDS
    orders = ORDERS

    def run(self, installation: Installation) -> SlaAlerts:
        return sla_alerts(installation, self.query)


class ListPending(ListOperation):
    """List the instances that soon breach a level of their SLA unless they come, the first of them first.

    A breach of the first level is pending from a quarter of an hour before it on, one of the second level from the
    time of the first level on.
    """

    command = "sla pending"
    fields = PENDING_FIELDS

    def run(self, installation: Installation) -> Page[PendingBreach]:
        return sla_pending(installation, self.query)


def sla_alerts(installation: Installation, query: Query) -> SlaAlerts:
    """Lists breaches of entities that the user may read, the newest first; open ones, unless a state is given.

    Raises:
        QueryError: a field is not known, or has no such value.
    """
    wanted = wanted_values(query)
    deadlines, now = readable_deadlines(installation), installation.settings.now()
    entities: dict[str, set[str]] = {"feed": set(), "process": set()}
    for one in deadlines:
        entities[one.kind].add(one.entity)
    clusters = list(dict.fromkeys(one.cluster for one in deadlines))
    with installation.ledger.engine.begin() as connection:
        found, total = listed_breaches(
            *(connection, entities, clusters, wanted, now),
            query.sort or "-deadline",
            query.offset,
            query.limit,
        )
        last = last_evaluations(connection, clusters)
    end = query.offset + len(found)
    evaluated = {name: last.get(name) for name in clusters}
    return SlaAlerts(tuple(found), total, end if end < total else None, evaluated)


def wanted_values(query: Query) -> dict[str, set[str]]:
    if query.sort:
        known_field(query.sort.removeprefix("-"), ORDERS)
    wanted: dict[str, set[str]] = {}
    for field, value in query.filters:
        legal = _LEGAL.get(known_field(field, FIELDS))
        if legal and value.casefold() not in {one.casefold() for one in legal}:
            raise QueryError(f"there is no {field} {value!r}; there is: {', '.join(legal)}")
        wanted.setdefault(field, set()).add(printable(value).casefold())
    return wanted
