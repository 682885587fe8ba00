"""Storage of what is known of executors, and of the runs that coordinators give them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeAlias

from sqlalchemy import Connection, delete, select, update
from sqlalchemy.dialects.postgresql import insert

from falcon_assets.history.database import of_row
from falcon_assets.history.tables import EXECUTORS
from falcon_assets.model.cluster import Cluster
from falcon_assets.planning.executor_health import Answer, ExecutorRecord

Reserved: TypeAlias = dict[str, tuple[str, str, int]]
"""Key of a run that does not exist yet -> when it was decided (ISO, real time), its job, and its slots."""
_TABLE = EXECUTORS.c


def known_executors(connection: Connection, cluster: Cluster) -> dict[str, ExecutorRecord]:
    """Returns name -> what is known of each declared executor."""
    found = {name: record for name, (record, _) in _rows(connection, cluster).items()}
    return {
        one.name: replace(
            found.get(one.name) or ExecutorRecord(cluster.name, one.name, one.endpoint),
            provisioned=one.provision is not None,
        )
        for one in cluster.executors
    }


def reserved_runs(connection: Connection, cluster: Cluster) -> dict[str, Reserved]:
    """Returns name -> the runs that coordinators gave the executor."""
    return {name: reserved for name, (_, reserved) in _rows(connection, cluster).items()}


def reserve(connection: Connection, cluster: Cluster, reserved: Mapping[str, Reserved]) -> None:
    """Replaces the reserved runs of executors; call it under the lock of the cluster's executors."""
    for one in cluster.executors:
        if one.name in reserved:
            row = _row(ExecutorRecord(cluster.name, one.name, one.endpoint))
            statement = insert(EXECUTORS).values(row | {"reserved": reserved[one.name]})
            changed = {"reserved": statement.excluded.reserved}
            connection.execute(statement.on_conflict_do_update(index_elements=["cluster", "name"], set_=changed))


def note_answer(
    connection: Connection, cluster: Cluster, name: str, answer: Answer, now: datetime
) -> tuple[ExecutorRecord, ExecutorRecord]:
    """Records what a probe found; returns what was known before and what is now. ``now`` is the real time."""
    return note(connection, cluster, name, lambda before: before.after(answer, now))


def note(
    connection: Connection, cluster: Cluster, name: str, change: Callable[[ExecutorRecord], ExecutorRecord]
) -> tuple[ExecutorRecord, ExecutorRecord]:
    """Changes what is known of an executor; returns what was known before and what is now."""
    connection.execute(select(EXECUTORS).where(_TABLE.cluster == cluster.name, _TABLE.name == name).with_for_update())
    before = known_executors(connection, cluster)[name]
    after = change(before)
    statement = insert(EXECUTORS).values(_row(after))
    kept = {key: statement.excluded[key] for key in _row(after) if key not in ("cluster", "name", "reserved", "told")}
    connection.execute(statement.on_conflict_do_update(index_elements=["cluster", "name"], set_=kept))
    return before, after


def forget_others(connection: Connection, cluster: Cluster) -> None:
    """Deletes what is known of executors that are not declared any more."""
    names = [one.name for one in cluster.executors]
    connection.execute(delete(EXECUTORS).where(_TABLE.cluster == cluster.name, _TABLE.name.not_in(names)))


def untold(connection: Connection, clusters: Collection[str], limit: int) -> list[ExecutorRecord]:
    """Returns executors whose health receivers may not know, and locks them until the end of the transaction."""
    found = select(EXECUTORS).where(_TABLE.cluster.in_(clusters)).order_by(_TABLE.cluster, _TABLE.name)
    records = [of_row(ExecutorRecord, row) for row in connection.execute(found.limit(limit).with_for_update())]
    return [one for one in records if one.settled_health and one.settled_health != one.told]


def set_told(connection: Connection, record: ExecutorRecord) -> None:
    own = (_TABLE.cluster == record.cluster, _TABLE.name == record.name)
    connection.execute(update(EXECUTORS).values(told=record.settled_health).where(*own))


def _rows(connection: Connection, cluster: Cluster) -> dict[str, tuple[ExecutorRecord, Reserved]]:
    """Without rows about other endpoints than those that are declared now."""
    endpoints = {one.name: one.endpoint for one in cluster.executors}
    rows = connection.execute(select(EXECUTORS).where(_TABLE.cluster == cluster.name))
    return {
        row.name: (
            of_row(ExecutorRecord, row),
            {key: (at, job, slots) for key, (at, job, slots) in row.reserved.items()},
        )
        for row in rows
        if endpoints.get(row.name) == row.endpoint
    }


def _row(record: ExecutorRecord) -> dict[str, Any]:
    return {**vars(record), "reserved": {}}
