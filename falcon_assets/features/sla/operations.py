"""The list of recorded breaches of SLAs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from falcon_assets.errors import QueryError, printable
from falcon_assets.features.sla.lists import BreachRow, last_evaluations, listed_breaches
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

    def ages(self, moment: Callable[[datetime], str]) -> Iterator[str]:
        """Says how old the list is: an empty one means nothing where nobody evaluates."""
        if not self.evaluated:
            yield "nothing here has an SLA"
        for cluster, at in self.evaluated.items():
            when = (
                f"were evaluated last at {moment(at)}" if at else "were never evaluated: is Dagster's daemon running?"
            )
            yield f"the SLAs on {cluster} {when}"


class ListAlerts(ListOperation):
    """List open SLA breaches, the newest first.

    WARN: the first level of the SLA is breached (low, should_start_in). ERROR: the SLA is missed (high, should_end_in).

    Use --filter state=MET for instances that completed late, and --filter state=WITHDRAWN for those no longer expected.
    """

    command = "sla alerts"
    page = ""
    fields = FIELDS
    orders = ORDERS

    def run(self, installation: Installation) -> SlaAlerts:
        wanted = wanted_values(self.query)
        deadlines, now = readable_deadlines(installation), installation.settings.now()
        entities: dict[str, set[str]] = {"feed": set(), "process": set()}
        for one in deadlines:
            entities[one.kind].add(one.entity)
        clusters = list(dict.fromkeys(one.cluster for one in deadlines))
        with installation.ledger.engine.begin() as connection:
            found, total = listed_breaches(
                *(connection, entities, clusters, wanted, now),
                self.query.sort or "-deadline",
                self.query.offset,
                self.query.limit,
            )
            last = last_evaluations(connection, clusters)
        end = self.query.offset + len(found)
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
