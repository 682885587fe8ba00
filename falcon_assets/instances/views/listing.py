"""Lists and counts of instances, in pages."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any

from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.definition_versions import EntityVersions, definition_of, versions_for
from falcon_assets.errors import UnknownInstanceError
from falcon_assets.instances.store.instance_pages import FEED_ROWS, InstanceRows, Key
from falcon_assets.instances.store.process_rows import PROCESS_ROWS
from falcon_assets.instances.store.reruns import requests_at
from falcon_assets.instances.views.asked import asked_for
from falcon_assets.instances.views.due import Asked, counted, in_order, without_rows
from falcon_assets.instances.views.feed_listing import feed_instances
from falcon_assets.instances.views.query import InstanceInfo, InstancePage, InstanceQuery, State
from falcon_assets.instances.views.waiting_reasons import waiting_reasons
from falcon_assets.model.access import may_read
from falcon_assets.model.entity import Key as Entity
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.model.process import Process
from falcon_assets.operations.acting import acting
from falcon_assets.operations.audit import require_readable
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Result
from falcon_assets.planning.instance_record import FeedState, InstanceRecord, InstanceState, RerunRequest
from falcon_assets.planning.reasons import OffTimeline
from falcon_assets.planning.retries import waits_for_rerun
from falcon_assets.planning.workloads import Workload


def by_value(
    connection: Connection, asked: Sequence[Asked], query: InstanceQuery
) -> Iterator[tuple[Key, InstanceRecord | None]]:
    """The instances after ``query.after``, with and without rows (None), by a column of the rows, then by name."""
    states, descending, after = query.states, query.descending, query.after_key
    column, start = query.by_value or "", None if after is None else (query.after_value, after)
    limit = query.limit + 1
    spans = [one.span for one in asked]
    known = PROCESS_ROWS.by_value(connection, spans, states, limit, column, start, descending=descending)  # type: ignore[arg-type]
    without = query.value(None)

    def order(one: tuple[Key, InstanceRecord | None]) -> Any:
        return query.value(one[1]), one[0]

    def unrecorded() -> Iterator[tuple[Key, None]]:
        """All have the same value: all of them, those after the start by name, or none follow."""
        begins = None
        if start is not None and start[0] is not None and start[0] != without:
            if (without < start[0]) is not descending:  # type: ignore[operator]  # of one order, of one type
                return
        elif start is not None:
            begins = start[1]
        if states is not None and InstanceState.WAITING not in states:
            return
        for one in sorted(asked, key=lambda part: part.key, reverse=descending):
            if (part := one.cut(begins, by_time=False, descending=descending)) is not None:
                yield from without_rows(connection, PROCESS_ROWS, part, {}, descending=descending)

    return heapq.merge(known, unrecorded(), key=order, reverse=descending)


def readable(
    installation: Installation, store: EntityStore, query: InstanceQuery, asked: Sequence[Asked]
) -> list[Asked]:
    """Leaves out entities that the user of the operating system may not read; raises DeniedError where one is named."""
    who = acting(installation.settings)
    refused = {one.key: entity for one in asked if not may_read((entity := _entity(store, one)).acl, who)}
    if query.name is not None:
        require_readable(installation, "instance list", {one.name: one for one in refused.values()}.values())
    return [one for one in asked if one.key not in refused]


def _entity(store: EntityStore, one: Asked) -> Feed | Process:
    name, cluster = one.key
    workload = None if one.kind == "feed" else store.workload(name, cluster)
    return workload.entity if workload else store.feed(name)


_AT_ONCE = 10_000
_LATEST = 10
"""Source: Apache Falcon."""


@dataclass(frozen=True)
class InstanceCounts(Result):
    entity: str
    kind: str
    cluster: str
    states: Mapping[State, int]


def list_instances(installation: Installation, query: InstanceQuery) -> InstancePage:
    """Returns a page, without entities that the user may not read.

    Raises:
        UnknownEntityError: the query names an unknown entity.
        DeniedError: the query names an entity that the user may not read.
        QueryError: an unknown state or page.
    """
    if query.reasons:
        return _with_reasons(installation, query)
    states, after, rows = query.states, query.after_key, rows_of(query)
    store = installation.all_entities.in_colo(query.colo) if query.colo else installation.entities
    now = installation.settings.now()
    with installation.tables_caught_up().begin() as connection:
        asked = readable(installation, store, query, asked_for(connection, store, query, now))
        numbers = None if query.uncounted else counted(connection, rows, asked, states)
        found: list[tuple[Key, Any]]
        if query.by_value:
            found = list(islice(by_value(connection, asked, query), query.limit + 1))
        else:
            order = {"by_time": query.by_time, "descending": query.descending}
            cut = [part for one in asked if (part := one.cut(after, **order))]
            found = list(islice(in_order(connection, rows, cut, query), query.limit + 1))
        more, found = len(found) > query.limit, found[: query.limit]
        infos = feed_instances if query.type == "feed" else _process_instances
        items = tuple(infos(installation, connection, store, found, now))
    total = None if numbers is None else sum(sum(one.values()) for one in numbers.values())
    return InstancePage(items, total, query.token(*found[-1]) if more else None)


def _with_reasons(installation: Installation, query: InstanceQuery) -> InstancePage:
    """Goes through all that may have a reason: why one waits is in no row, rules find it."""
    states: frozenset[State] = query.states or frozenset(rows_of(query).states.__members__.values())
    if OffTimeline.kind not in query.reasons:
        states -= {InstanceState.SUCCEEDED, FeedState.AVAILABLE}
    filters = [*(one for one in query.filters if one[0] != "state"), *(("state", one.value) for one in states)]

    def fitting(after: str | None) -> Iterator[InstanceInfo]:
        every = replace(query, filters=tuple(filters), reasons=(), after=after, limit=_AT_ONCE)
        wanted = set(query.reasons)
        return (one for one in all_instances(installation, every) if one.reason and one.reason["kind"] in wanted)

    found = tuple(islice(fitting(query.after), query.limit + 1)) if states else ()
    items, is_all = found[: query.limit], query.after is None and len(found) <= query.limit
    total: int | None = len(items)
    if not is_all:
        total = None if query.uncounted else sum(1 for _ in fitting(None))
    last = items[-1] if len(found) > query.limit else None
    return InstancePage(items, total, query.token((last.entity, last.cluster, last.instance), last) if last else None)


def all_instances(installation: Installation, query: InstanceQuery) -> Iterator[InstanceInfo]:
    """Page by page; raises as :func:`list_instances`."""
    query = replace(query, uncounted=True)
    while True:
        page = list_instances(installation, query)
        yield from page.items
        if page.next is None:
            return
        query = replace(query, after=page.next)


def instance_status(installation: Installation, query: InstanceQuery) -> InstancePage:
    """Returns the instances of a time span, or a single one.

    Raises:
        UnknownInstanceError: the query is for a single instance, which does not exist.
        UnknownEntityError, QueryError: as :func:`list_instances`.
    """
    page = list_instances(installation, query)
    if query.alone and query.start and not (page.items or query.after or query.filters):
        raise UnknownInstanceError(f"{query.name} has no instance {format_instant(query.start)}")
    return page


def latest(query: InstanceQuery) -> InstanceQuery:
    if query.start or query.end:
        return query
    return replace(query, sort="-instance", limit=min(query.limit, _LATEST))


def summarize_instances(installation: Installation, query: InstanceQuery) -> list[InstanceCounts]:
    """Counts the instances of a query by state; raises as :func:`list_instances`."""
    store = installation.all_entities.in_colo(query.colo) if query.colo else installation.entities
    with installation.tables_caught_up().begin() as connection:
        asked = readable(installation, store, query, asked_for(connection, store, query, installation.settings.now()))
        found = counted(connection, rows_of(query), asked, query.states)
    return [InstanceCounts(one.key[0], one.kind, one.key[1], found.get(one.key, {})) for one in asked]


def rows_of(query: InstanceQuery) -> InstanceRows[Any, Any]:
    return FEED_ROWS if query.type == "feed" else PROCESS_ROWS


def _process_instances(
    installation: Installation,
    connection: Connection,
    store: EntityStore,
    found: Sequence[tuple[Key, InstanceRecord | None]],
    now: datetime,
) -> Iterator[InstanceInfo]:
    workloads = {key[:2]: one for key, _ in found if (one := store.workload(*key[:2]))}
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
    records = {key: record for key, record in found if record is not None}
    asked = requests_at(connection, records)
    return {key: request for key, request in asked.items() if waits_for_rerun(request, records[key])}


def _is_said_off(record: InstanceRecord | None) -> bool:
    """Where an instance off the timeline ended badly, its own reason matters more."""
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
    """``again`` is the rerun that the instance waits for, regardless of the record; ``reason`` None: as recorded."""
    entity, cluster, nominal = key
    kind = workload.kind
    waits, latest = again is not None, again is not None and again.use_latest
    definition = definition_of(workload, nominal, record, versions, waits=waits, use_latest=latest)
    if record is None:
        return InstanceInfo(entity, kind, cluster, nominal, InstanceState.WAITING, reason, definition=definition)
    attempt = (record.attempt, record.run, record.started, record.ended, definition, record.executor)
    state = InstanceState.WAITING if waits else record.state
    return InstanceInfo(entity, kind, cluster, nominal, state, reason or _recorded(record), *attempt)


def _recorded(record: InstanceRecord) -> dict[str, Any] | None:
    """A reason without data is named after the state."""
    if record.reason_data is not None:
        return dict(record.reason_data)
    return {"kind": record.state.value.lower(), "text": record.reason} if record.reason else None
