"""Lists of instances: what the ledger has, and what is due and has no row there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any

from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.catalog.stored_tree import Key as Entity
from falcon_assets.errors import UnknownInstanceError
from falcon_assets.ledger.entities.versions_of_instances import EntityVersions
from falcon_assets.ledger.instances.instance_pages import FEED_ROWS, InstanceRows, Key
from falcon_assets.ledger.instances.process_rows import PROCESS_ROWS
from falcon_assets.ledger.instances.reruns import requests_at
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.instances.asked import asked_for, kind_of_workload
from falcon_assets.operations.instances.definition import definition_of, versions_for
from falcon_assets.operations.instances.due import counted, in_order
from falcon_assets.operations.instances.feeds.listing import feed_instances
from falcon_assets.operations.instances.ordered_by_value import by_value
from falcon_assets.operations.instances.query import InstanceInfo, InstancePage, InstanceQuery, State
from falcon_assets.operations.instances.readable import readable
from falcon_assets.operations.instances.reasons import waiting_reasons
from falcon_assets.planning.instances.instance_record import InstanceRecord, InstanceState, RerunRequest
from falcon_assets.planning.rules.retries import waits_for_rerun
from falcon_assets.planning.rules.unlaunched import OffTimeline
from falcon_assets.planning.workloads.workload import Workload

_LATEST = 10
"""How many instances a status shows when no time is given (source: Apache Falcon)."""


@dataclass(frozen=True)
class InstanceCounts:
    """How many instances of a process, a replication or a feed on a cluster are in which state."""

    entity: str
    kind: str
    cluster: str
    states: Mapping[State, int]

    def as_data(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        states = {state.value: number for state, number in self.states.items()}
        return {"entity": self.entity, "kind": self.kind, "cluster": self.cluster, "states": states}


def list_instances(installation: Installation, query: InstanceQuery) -> InstancePage:
    """A part of the instances that are asked for, without those of entities that the user may not read.

    Raises:
        UnknownEntityError: the query names what is not there.
        DeniedError: the query names what the user may not read.
        QueryError: it asks for a state, or a part, that there is not.
    """
    states, after, rows = query.states, query.after_key, rows_of(query)
    store = installation.all_entities.in_colo(query.colo) if query.colo else installation.entities
    now = installation.settings.now()
    with installation.tables_caught_up().begin() as connection:
        asked = readable(installation, store, query, asked_for(connection, store, query, now))
        total = sum(sum(numbers.values()) for numbers in counted(connection, rows, asked, states).values())
        found: list[tuple[Key, Any]]
        if query.by_value:
            found = list(islice(by_value(connection, asked, query), query.limit + 1))
        else:
            told = {"by_time": query.by_time, "descending": query.descending}
            cut = [part for one in asked if (part := one.cut(after, **told))]
            found = list(islice(in_order(connection, rows, cut, query), query.limit + 1))
        more, found = len(found) > query.limit, found[: query.limit]
        infos = feed_instances if query.type == "feed" else _process_instances
        items = tuple(infos(installation, connection, store, found, now))
    return InstancePage(items, total, query.token(*found[-1]) if more else None)


def all_instances(installation: Installation, query: InstanceQuery) -> Iterator[InstanceInfo]:
    """All of the instances that are asked for, part by part; raises as :func:`list_instances`."""
    while True:
        page = list_instances(installation, query)
        yield from page.items
        if page.next is None:
            return
        query = replace(query, after=page.next)


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
    return replace(query, sort="-instance", limit=min(query.limit, _LATEST))


def summarize_instances(installation: Installation, query: InstanceQuery) -> list[InstanceCounts]:
    """How many of the instances that are asked for are in which state; raises as :func:`list_instances`."""
    store = installation.all_entities.in_colo(query.colo) if query.colo else installation.entities
    with installation.tables_caught_up().begin() as connection:
        asked = readable(installation, store, query, asked_for(connection, store, query, installation.settings.now()))
        found = counted(connection, rows_of(query), asked, query.states)
    return [InstanceCounts(one.key[0], one.kind, one.key[1], found.get(one.key, {})) for one in asked]


def rows_of(query: InstanceQuery) -> InstanceRows[Any, Any]:
    """Where the ledger has the instances that are asked for."""
    return FEED_ROWS if query.type == "feed" else PROCESS_ROWS


def _process_instances(
    installation: Installation,
    connection: Connection,
    store: EntityStore,
    found: Sequence[tuple[Key, InstanceRecord | None]],
    now: datetime,
) -> Iterator[InstanceInfo]:
    workloads = {(one.name, one.cluster): one for one in store.workloads}
    again = to_run_again(connection, found)
    off = {key: reason for key, _ in found if (reason := OffTimeline.of(workloads[key[:2]].timeline, key[2]))}
    again = {key: request for key, request in again.items() if key not in off}
    waits = [key for key, record in found if (_waits(record) or key in again) and key not in off]
    waiting = [(workloads[key[:2]], key[2]) for key in waits]
    reasons = waiting_reasons(installation, connection, store, waiting, now)
    reasons |= {key: off[key].as_data() for key, record in found if key in off and _is_said_off(record)}
    versions = versions_for(connection, (workload for workload, _ in waiting)) if waiting else {}
    return (
        process_info(workloads[key[:2]], key, record, versions, reasons.get(key), again=again.get(key))
        for key, record in found
    )


def to_run_again(connection: Connection, found: Sequence[tuple[Key, InstanceRecord | None]]) -> dict[Key, RerunRequest]:
    """Those of the instances that wait for a rerun, whatever their row says."""
    records = {key: record for key, record in found if record is not None}
    asked = requests_at(connection, records)
    return {key: request for key, request in asked.items() if waits_for_rerun(request, records[key])}


def _is_said_off(record: InstanceRecord | None) -> bool:
    """Whether of an instance off the timeline that is said; where it ended badly, why it did matters more."""
    return _waits(record) or (record is not None and _recorded(record) is None)


def _waits(record: InstanceRecord | None) -> bool:
    return record is None or record.state in (InstanceState.WAITING, InstanceState.READY)


def process_info(
    workload: Workload,
    key: Key,
    record: InstanceRecord | None,
    versions: Mapping[Entity, EntityVersions],
    reason: dict[str, Any] | None = None,
    *,
    again: RerunRequest | None = None,
) -> InstanceInfo:
    """What is said of an instance.

    Args:
        workload: Of what.
        key: Which.
        record: What is known about it; None: no run was given it.
        versions: Of what waits, the versions of its definition.
        reason: Why it waits; None: as it was recorded.
        again: The rerun that it waits for, whatever the record says.
    """
    entity, cluster, nominal = key
    kind = kind_of_workload(workload)
    waits, latest = again is not None, again is not None and again.use_latest
    definition = definition_of(workload, nominal, record, versions, waits=waits, use_latest=latest)
    if record is None:
        return InstanceInfo(entity, kind, cluster, nominal, InstanceState.WAITING, reason, definition=definition)
    run = record.queued_run or record.run_id
    told = (record.attempt, run, record.started, record.ended, definition)
    state = InstanceState.WAITING if waits else record.state
    return InstanceInfo(entity, kind, cluster, nominal, state, reason or _recorded(record), *told)


def _recorded(record: InstanceRecord) -> dict[str, Any] | None:
    """The reason as it was recorded; one that has only words is named after the state."""
    if record.reason_data is not None:
        return dict(record.reason_data)
    return {"kind": record.state.value.lower(), "text": record.reason} if record.reason else None
