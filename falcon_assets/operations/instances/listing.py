"""Lists of the instances of processes and replications: what the ledger has, and what is due and was given no run."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sqlalchemy import Connection

from falcon_assets.errors import UnknownInstanceError
from falcon_assets.ledger.instance_pages import counted, rows_of
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.instances.due import Asked, asked_for, count_pending, kind_of_workload
from falcon_assets.operations.instances.query import InstanceInfo, InstancePage, InstanceQuery, Key
from falcon_assets.operations.instances.reasons import waiting_reasons
from falcon_assets.planning.instances.instance_record import InstanceRecord, InstanceState
from falcon_assets.planning.workloads.workload import Workload

_LATEST = 10
"""How many instances a status shows when no time is given (source: Apache Falcon)."""


@dataclass(frozen=True)
class InstanceCounts:
    """How many instances of a process or replication on a cluster are in which state."""

    entity: str
    kind: str
    cluster: str
    states: Mapping[InstanceState, int]

    def as_data(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        states = {state.value: number for state, number in self.states.items()}
        return {"entity": self.entity, "kind": self.kind, "cluster": self.cluster, "states": states}


def list_instances(installation: Installation, query: InstanceQuery) -> InstancePage:
    """A part of the instances that are asked for.

    Raises:
        UnknownEntityError: the query names what is not there.
        QueryError: it asks for a state, or a part, that there is not.
    """
    states, after = query.states, query.after_key
    store = installation.all_entities.in_colo(query.colo) if query.colo else installation.entities
    now = installation.settings.now()
    installation.ledger.catch_up()
    with installation.ledger.engine.begin() as connection:
        asked = asked_for(connection, store, query, now)
        total = sum(sum(numbers.values()) for numbers in _counts(connection, asked, states).values())
        cut = [part for one in asked if (part := one.cut(after, by_time=query.by_time, descending=query.descending))]
        found = list(islice(_merged(connection, cut, query), query.limit + 1))
        more, found = len(found) > query.limit, found[: query.limit]
        workloads = {one.key: one.workload for one in asked}
        waiting = [(workloads[key[:2]], key[2]) for key, record in found if _waits(record)]
        reasons = waiting_reasons(installation, connection, store, waiting, now)
    items = tuple(_info(workloads[key[:2]], key, record, reasons.get(key)) for key, record in found)
    return InstancePage(items, total, query.token(found[-1][0]) if more else None)


def instance_status(installation: Installation, query: InstanceQuery) -> InstancePage:
    """The instances of an entity in a time, or the latest ones.

    Raises:
        UnknownInstanceError: one instance is asked for, and there is none of that time.
        UnknownEntityError, QueryError: as :func:`list_instances`.
    """
    page = list_instances(installation, query)
    if query.alone and query.start and not page.total and not query.filters:
        raise UnknownInstanceError(f"{query.name} has no instance {format_instant(query.start)}")
    return page


def latest(query: InstanceQuery) -> InstanceQuery:
    """The query, or where it names no time, one for the latest instances."""
    if query.start or query.end:
        return query
    return InstanceQuery(**{**vars(query), "sort": "-instance", "limit": min(query.limit, _LATEST)})


def summarize_instances(installation: Installation, query: InstanceQuery) -> list[InstanceCounts]:
    """How many of the instances that are asked for are in which state; raises as :func:`list_instances`."""
    store = installation.all_entities.in_colo(query.colo) if query.colo else installation.entities
    installation.ledger.catch_up()
    with installation.ledger.engine.begin() as connection:
        asked = asked_for(connection, store, query, installation.settings.now())
        found = _counts(connection, asked, query.states)
    return [
        InstanceCounts(one.workload.name, kind_of_workload(one.workload), one.workload.cluster, found.get(one.key, {}))
        for one in asked
    ]


def _counts(
    connection: Connection, asked: Sequence[Asked], states: frozenset[InstanceState] | None
) -> dict[tuple[str, str], dict[InstanceState, int]]:
    found = counted(connection, [one.span for one in asked], states)
    if states is None or InstanceState.WAITING in states:
        for key, number in count_pending(connection, asked).items():
            if number:
                own = found.setdefault(key, {})
                own[InstanceState.WAITING] = own.get(InstanceState.WAITING, 0) + number
    order = {state: place for place, state in enumerate(InstanceState)}
    return {key: dict(sorted(own.items(), key=lambda one: order[one[0]])) for key, own in found.items()}


def _merged(
    connection: Connection, asked: Sequence[Asked], query: InstanceQuery
) -> Iterator[tuple[Key, InstanceRecord | None]]:
    """Rows and instances without a row, in the order that is asked for; without a record: no run was given it."""
    states, by_time, descending = query.states, query.by_time, query.descending
    spans = [one.span for one in asked]
    rows = rows_of(connection, spans, states, query.limit + 1, by_time=by_time, descending=descending)
    known = [((process, cluster, record.nominal), record) for process, cluster, record in rows]
    if states is not None and InstanceState.WAITING not in states:
        return iter(known)

    def order(one: tuple[Key, InstanceRecord | None]) -> Any:
        entity, cluster, nominal = one[0]
        return (nominal, entity, cluster) if by_time else one[0]

    def pending(one: Asked) -> Iterator[tuple[Key, None]]:
        return (((*one.key, nominal), None) for nominal in one.pending(connection, descending=descending))

    def in_turn() -> Iterator[tuple[Key, None]]:
        for one in sorted(asked, key=lambda part: part.key, reverse=descending):
            yield from pending(one)

    others = map(pending, asked) if by_time else [in_turn()]
    return heapq.merge(known, *others, key=order, reverse=descending)


def _waits(record: InstanceRecord | None) -> bool:
    return record is None or record.state in (InstanceState.WAITING, InstanceState.READY)


def _info(workload: Workload, key: Key, record: InstanceRecord | None, reason: dict[str, Any] | None) -> InstanceInfo:
    entity, cluster, nominal = key
    kind = kind_of_workload(workload)
    if record is None:
        return InstanceInfo(entity, kind, cluster, nominal, InstanceState.WAITING, reason)
    run = record.queued_run or record.run_id
    told = (record.attempt, run, record.started, record.ended)
    return InstanceInfo(entity, kind, cluster, nominal, record.state, reason or _recorded(record), *told)


def _recorded(record: InstanceRecord) -> dict[str, Any] | None:
    """The reason as it was recorded; one that has only words is named after the state."""
    if record.reason_data is not None:
        return dict(record.reason_data)
    return {"kind": record.state.value.lower(), "text": record.reason} if record.reason else None
