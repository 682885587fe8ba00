"""Requests to rerun instances."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    ARRAY,
    JSON,
    ColumnElement,
    Connection,
    Executable,
    Text,
    and_,
    bindparam,
    cast,
    delete,
    false,
    func,
    not_,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import insert

from falcon_assets.history.database import among, lock_in_transaction, parts
from falcon_assets.history.events.inputs import changes_as_json, changes_of_json
from falcon_assets.history.folding.fold import record_of
from falcon_assets.history.tables import PROCESS_INSTANCES, RERUNS
from falcon_assets.history.tables.row_values import ProcessKey
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState, RerunRequest

_CHUNK = 5_000
_LOCK = "falcon reruns"
"""Held by writers of many requests, which could deadlock each other otherwise."""
OF_INSTANCE = and_(
    PROCESS_INSTANCES.c.process == RERUNS.c.process,
    PROCESS_INSTANCES.c.cluster == RERUNS.c.cluster,
    PROCESS_INSTANCES.c.nominal == RERUNS.c.nominal,
)


@dataclass(frozen=True)
class Requested:
    process: str
    cluster: str
    nominal: datetime
    request: RerunRequest
    record: InstanceRecord


def requested(connection: Connection, clusters: Collection[str]) -> list[Requested]:
    """Including served ones."""
    there = RERUNS.c.cluster.in_(clusters)
    # In this order: one that is served and forgotten in between is not there, instead of asked for an unknown instance.
    known = select(PROCESS_INSTANCES).join_from(RERUNS, PROCESS_INSTANCES, OF_INSTANCE).where(there)
    records = {(row.process, row.cluster, row.nominal): record_of(row) for row in connection.execute(known)}
    asked = select(RERUNS).where(there).order_by(RERUNS.c.process, RERUNS.c.cluster, RERUNS.c.nominal)
    requests = {(row.process, row.cluster, row.nominal): _request(row) for row in connection.execute(asked)}
    return [
        Requested(*key, request, records.get(key) or InstanceRecord(key[2], InstanceState.WAITING))
        for key, request in requests.items()
    ]


def requests_of(
    connection: Connection, process: str, cluster: str, nominals: Iterable[datetime]
) -> dict[datetime, RerunRequest]:
    own = (RERUNS.c.process == process, RERUNS.c.cluster == cluster)
    found = {}
    for part in parts(list(nominals)):
        for row in connection.execute(select(RERUNS).where(*own, RERUNS.c.nominal.in_(part))):
            found[row.nominal] = _request(row)
    return found


def with_properties(connection: Connection, process: str, cluster: str) -> dict[datetime, RerunRequest]:
    own = (RERUNS.c.process == process, RERUNS.c.cluster == cluster, cast(RERUNS.c.properties, Text) != "{}")
    return {row.nominal: _request(row) for row in connection.execute(select(RERUNS).where(*own))}


def request(connection: Connection, requests: Mapping[ProcessKey, RerunRequest]) -> None:
    """Replaces requests of the same instances; all or none."""
    if not requests:
        return
    lock_in_transaction(connection, _LOCK)
    statement = _inserted()
    for part in parts(sorted(requests.items(), key=lambda item: item[0]), _CHUNK):
        columns: dict[str, list[Any]] = {
            "process": [key[0] for key, _ in part],
            "cluster": [key[1] for key, _ in part],
            "nominal": [key[2] for key, _ in part],
            "kind": [one.kind for _, one in part],
            "cause": [json.dumps(changes_as_json(one.changes)) for _, one in part],
            "attempt": [one.attempt for _, one in part],
            "failures": [one.failures for _, one in part],
            "requested_at": [one.requested_at for _, one in part],
            "late_workflow": [one.late_workflow for _, one in part],
            "use_latest": [one.use_latest for _, one in part],
            "actor": [one.by for _, one in part],
            "reason": [one.reason for _, one in part],
            "properties": [json.dumps(dict(one.properties)) for _, one in part],
        }
        connection.execute(statement, columns)


@cache
def _inserted() -> Executable:
    """One list per column: a statement per row takes ten times as long."""
    types = {column.name: Text() if isinstance(column.type, JSON) else column.type for column in RERUNS.c}
    arrays = [bindparam(name, type_=ARRAY(type_)) for name, type_ in types.items()]
    given = func.unnest(*arrays).table_valued(*types).render_derived(name="given")
    values = select(*(cast(given.c[column.name], column.type) for column in RERUNS.c))
    rows = insert(RERUNS).from_select(list(types), values)
    keys = [column.name for column in RERUNS.primary_key]
    others = {name: rows.excluded[name] for name in types if name not in keys}
    return rows.on_conflict_do_update(index_elements=keys, set_=others)


def waiting() -> ColumnElement[bool]:
    """As ``waits_for_rerun`` for records: no run was assigned for the request yet."""
    run, asked = PROCESS_INSTANCES.c, RERUNS.c
    gave_up = and_(
        run.state == InstanceState.TIMED_OUT.value,
        or_(run.ended > asked.requested_at, and_(run.ended.is_not(None), run.failures > asked.failures)),
    )
    is_free = and_(run.queued_run.is_(None), run.state != InstanceState.RUNNING.value)
    return and_(OF_INSTANCE, is_free, run.attempt <= asked.attempt, not_(func.coalesce(gave_up, false())))


def forget(connection: Connection, cluster: str, served: Iterable[Requested]) -> None:
    """Keeps requests that were replaced meanwhile."""
    served = list(served)
    if not served:
        return
    lock_in_transaction(connection, _LOCK)
    key = (RERUNS.c.process, RERUNS.c.nominal, RERUNS.c.attempt)
    for part in parts([(one.process, one.nominal, one.request.attempt) for one in served]):
        connection.execute(delete(RERUNS).where(RERUNS.c.cluster == cluster, among(key, part)))


def requests_at(connection: Connection, keys: Collection[ProcessKey]) -> dict[ProcessKey, RerunRequest]:
    own = (RERUNS.c.process, RERUNS.c.cluster, RERUNS.c.nominal)
    found = {}
    for part in parts(keys):
        for row in connection.execute(select(RERUNS).where(among(own, part))):
            found[row.process, row.cluster, row.nominal] = _request(row)
    return found


def _request(row: Any) -> RerunRequest:
    changes = changes_of_json(row.cause)
    properties = tuple(sorted(row.properties.items()))
    how = (row.late_workflow, row.use_latest, row.actor, row.reason, properties)
    return RerunRequest(row.kind, row.attempt, row.failures, row.requested_at, changes, *how)
