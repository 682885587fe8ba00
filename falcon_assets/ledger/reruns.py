"""Requests to rerun instances, and what late data asks for them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Connection,
    TableValuedAlias,
    Text,
    and_,
    delete,
    func,
    literal,
    select,
    tuple_,
)

from falcon_assets.events.inputs import changes_as_json, changes_of_json
from falcon_assets.ledger.fold import record_of
from falcon_assets.ledger.reduce import ProcessKey
from falcon_assets.ledger.tables import CONSUMED, FEED_INSTANCES, PROCESS_INSTANCES, RERUNS
from falcon_assets.ledger.upsert import parts, upsert
from falcon_assets.planning.instances.instance_record import InstanceRecord, InstanceState, LateChange, RerunRequest
from falcon_assets.planning.rules.lateness import Arrival

LateInputs = Collection[tuple[str, str, str]]
"""Inputs whose late changes matter: (cluster, process, name of the input)."""


@dataclass(frozen=True)
class Requested:
    """A request, and what is known about its instance."""

    process: str
    cluster: str
    nominal: datetime
    request: RerunRequest
    record: InstanceRecord


@dataclass(frozen=True)
class Changed:
    """A succeeded process instance whose late inputs changed.

    Attributes:
        record: What is known about it.
        request: A request to rerun it that is there already.
        arrivals: The changes, in the order of inputs and instances.
        newest: The latest instance of the window of each late input, by the name of the input.
    """

    record: InstanceRecord
    request: RerunRequest | None
    arrivals: tuple[Arrival, ...]
    newest: Mapping[str, datetime]


def requested(connection: Connection, clusters: Collection[str]) -> list[Requested]:
    """All requests on these clusters, those that have been served included."""
    own = and_(
        PROCESS_INSTANCES.c.process == RERUNS.c.process,
        PROCESS_INSTANCES.c.cluster == RERUNS.c.cluster,
        PROCESS_INSTANCES.c.nominal == RERUNS.c.nominal,
    )
    there = RERUNS.c.cluster.in_(clusters)
    asked = select(RERUNS).where(there).order_by(RERUNS.c.process, RERUNS.c.cluster, RERUNS.c.nominal)
    requests = {(row.process, row.cluster, row.nominal): _request(row) for row in connection.execute(asked)}
    if not requests:
        return []
    known = select(PROCESS_INSTANCES).join_from(RERUNS, PROCESS_INSTANCES, own).where(there)
    records = {(row.process, row.cluster, row.nominal): record_of(row) for row in connection.execute(known)}
    return [
        Requested(*key, request, records.get(key) or InstanceRecord(key[2], InstanceState.WAITING))
        for key, request in requests.items()
    ]


def requests_of(
    connection: Connection, process: str, cluster: str, nominals: Iterable[datetime]
) -> dict[datetime, RerunRequest]:
    """The requests that there are for those instances."""
    own = (RERUNS.c.process == process, RERUNS.c.cluster == cluster)
    found = {}
    for part in parts(list(nominals)):
        for row in connection.execute(select(RERUNS).where(*own, RERUNS.c.nominal.in_(part))):
            found[row.nominal] = _request(row)
    return found


def request(connection: Connection, requests: Mapping[ProcessKey, RerunRequest]) -> None:
    """Writes requests down, each in the place of what there was for its instance."""
    rows = [
        {
            "process": process,
            "cluster": cluster,
            "nominal": nominal,
            "kind": one.kind,
            "cause": changes_as_json(one.changes),
            "attempt": one.attempt,
            "failures": one.failures,
            "requested_at": one.requested_at,
        }
        for (process, cluster, nominal), one in sorted(requests.items(), key=lambda item: item[0])
    ]
    upsert(connection, RERUNS, rows)


def forget(connection: Connection, cluster: str, served: Iterable[Requested]) -> None:
    """Deletes requests, unless another was written for the instance meanwhile."""
    key = (RERUNS.c.process, RERUNS.c.nominal, RERUNS.c.attempt)
    for part in parts([(one.process, one.nominal, one.request.attempt) for one in served]):
        connection.execute(delete(RERUNS).where(RERUNS.c.cluster == cluster, tuple_(*key).in_(part)))


def changed(connection: Connection, late_inputs: LateInputs) -> dict[ProcessKey, Changed]:
    """The succeeded instances, in no run, whose late inputs changed and of which nobody said that it was too late.

    Costs what has changed, whatever the length of history.
    """
    if not late_inputs:
        return {}
    asked = _asked(late_inputs)
    read, there, run = CONSUMED.c, FEED_INSTANCES.c, PROCESS_INSTANCES.c
    statement = (
        select(PROCESS_INSTANCES, read.input, read.feed, read.instance, read.version.label("before"))
        .add_columns(there.version.label("after"), there.seen_at, there.late, there.looked_before)
        .join_from(asked, CONSUMED, _late_input(asked))
        .join(
            PROCESS_INSTANCES,
            and_(run.process == read.process, run.cluster == read.cluster, run.nominal == read.nominal),
        )
        .join(
            FEED_INSTANCES,
            and_(there.cluster == read.input_cluster, there.feed == read.feed, there.instance == read.instance),
        )
        .where(read.stale, run.state == InstanceState.SUCCEEDED.value, run.queued_run.is_(None))
        .order_by(run.nominal, run.process, run.cluster, read.input, read.instance)
    )
    records: dict[ProcessKey, InstanceRecord] = {}
    arrivals: dict[ProcessKey, list[Arrival]] = {}
    for row in connection.execute(statement):
        key = (row.process, row.cluster, row.nominal)
        records[key] = record_of(row)
        change = LateChange(row.input, row.feed, row.instance, row.before, row.after)
        arrivals.setdefault(key, []).append(Arrival(change, row.seen_at, row.late, row.looked_before))
    newest = _newest(connection, late_inputs, arrivals)
    there_already = requests_at(connection, arrivals)
    return {
        key: Changed(records[key], there_already.get(key), tuple(found), newest[key]) for key, found in arrivals.items()
    }


def republished(
    connection: Connection, late_inputs: LateInputs, process: str, cluster: str, nominals: Iterable[datetime]
) -> dict[datetime, list[LateChange]]:
    """What late reruns have published anew of the late inputs since those instances of the process read them."""
    if not late_inputs:
        return {}
    asked = _asked(late_inputs)
    read, there = CONSUMED.c, FEED_INSTANCES.c
    found: dict[datetime, list[LateChange]] = {}
    for part in parts(list(nominals)):
        statement = (
            select(read.nominal, read.input, read.feed, read.instance, read.version, there.version.label("after"))
            .join_from(asked, CONSUMED, _late_input(asked))
            .join(
                FEED_INSTANCES,
                and_(there.cluster == read.input_cluster, there.feed == read.feed, there.instance == read.instance),
            )
            .where(read.stale, there.late, read.process == process, read.cluster == cluster, read.nominal.in_(part))
            .order_by(read.nominal, read.input, read.instance)
        )
        for row in connection.execute(statement):
            change = LateChange(row.input, row.feed, row.instance, row.version, row.after)
            found.setdefault(row.nominal, []).append(change)
    return found


def late_readers(
    connection: Connection, late_inputs: LateInputs, instances: Collection[tuple[str, str, datetime]]
) -> list[ProcessKey]:
    """The process instances that read one of these feed instances (cluster, feed, instance) as one of the late inputs.

    Replications read on another cluster than theirs.
    """
    if not late_inputs:
        return []
    asked = _asked(late_inputs)
    read = CONSUMED.c
    found: list[ProcessKey] = []
    for part in parts(instances):
        statement = (
            select(read.process, read.cluster, read.nominal)
            .join_from(CONSUMED, asked, _late_input(asked))
            .where(tuple_(read.input_cluster, read.feed, read.instance).in_(part))
            .distinct()
        )
        found += [(row.process, row.cluster, row.nominal) for row in connection.execute(statement)]
    return found


def _newest(
    connection: Connection, late_inputs: LateInputs, keys: Collection[ProcessKey]
) -> dict[ProcessKey, dict[str, datetime]]:
    asked = _asked(late_inputs)
    read = CONSUMED.c
    found: dict[ProcessKey, dict[str, datetime]] = {}
    for part in parts(keys):
        own = (read.process, read.cluster, read.nominal)
        statement = (
            select(*own, read.input, func.max(read.instance).label("newest"))
            .join_from(CONSUMED, asked, _late_input(asked))
            .where(tuple_(*own).in_(part))
            .group_by(*own, read.input)
        )
        for row in connection.execute(statement):
            found.setdefault((row.process, row.cluster, row.nominal), {})[row.input] = row.newest
    return found


def requests_at(connection: Connection, keys: Collection[ProcessKey]) -> dict[ProcessKey, RerunRequest]:
    """The requests that there are for those instances."""
    own = (RERUNS.c.process, RERUNS.c.cluster, RERUNS.c.nominal)
    found = {}
    for part in parts(keys):
        for row in connection.execute(select(RERUNS).where(tuple_(*own).in_(part))):
            found[row.process, row.cluster, row.nominal] = _request(row)
    return found


def _request(row: Any) -> RerunRequest:
    changes = changes_of_json(row.cause)
    return RerunRequest(row.kind, row.attempt, row.failures, row.requested_at, changes)


def _asked(late_inputs: LateInputs) -> TableValuedAlias:
    """Rows of arrays: VALUES would be compiled anew for each query, row by row."""
    arrays = (literal(list(items), ARRAY(Text)) for items in zip(*sorted(late_inputs), strict=True))
    return func.unnest(*arrays).table_valued("cluster", "process", "input").render_derived(name="asked")


def _late_input(asked: TableValuedAlias) -> ColumnElement[bool]:
    read = CONSUMED.c
    return and_(read.cluster == asked.c.cluster, read.process == asked.c.process, read.input == asked.c.input)
