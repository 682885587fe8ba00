"""The operation that lists recorded breaches of SLAs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from falcon_assets.errors import QueryError, printable
from falcon_assets.features.sla.lists import BreachRow, last_evaluations, listed_breaches
from falcon_assets.features.sla.readable_deadlines import readable_deadlines
from falcon_assets.features.sla.store import BreachState
from falcon_assets.model.instant import format_instant
from falcon_assets.model.sla import SlaLevel
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.paging import Page, Query, known_field

FIELDS = dict.fromkeys(("kind", "entity", "cluster", "level", "severity", "state"))
ORDERS = dict.fromkeys(("deadline", "instance", *FIELDS))
_LEGAL = {
    "kind": ("feed", "process"),
    "level": tuple(one.value for one in SlaLevel),
    "severity": ("WARN", "ERROR"),
    "state": tuple(one.value for one in BreachState),
}


@dataclass(frozen=True)
class SlaAlerts:
    """A part of the breaches; ``evaluated`` is cluster -> last evaluation on the falcon clock, None: never."""

    page: Page[BreachRow]
    evaluated: dict[str, datetime | None]

    def as_data(self) -> dict[str, Any]:
        evaluated = {name: at and at.isoformat() for name, at in self.evaluated.items()}
        return {**self.page.as_data(breach_data), "evaluated": evaluated}


def breach_data(one: BreachRow) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "entity": one.entity,
        "cluster": one.cluster,
        "instance": format_instant(one.instance),
        "level": one.level.value,
        "severity": one.level.severity,
        "deadline": one.deadline.isoformat(),
        "state": one.state.value,
        "cleared": one.cleared_at and one.cleared_at.isoformat(),
    }


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
    return SlaAlerts(
        Page(tuple(found), total, end if end < total else None), {name: last.get(name) for name in clusters}
    )


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
