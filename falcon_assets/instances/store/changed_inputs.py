"""Late data: consumed instances that were replaced after they were read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, TableValuedAlias, and_, func, select

from falcon_assets.history.database import among, parts, rows_of
from falcon_assets.history.folding.fold import record_of
from falcon_assets.history.tables import CONSUMED, DATA_VERSIONS, FEED_INSTANCES, PROCESS_INSTANCES
from falcon_assets.history.tables.instances import has_other_rows
from falcon_assets.history.tables.row_values import ProcessKey
from falcon_assets.instances.store import reruns
from falcon_assets.planning.instance_record import FeedState, InstanceRecord, InstanceState, LateChange, RerunRequest
from falcon_assets.planning.late_inputs import Arrival

LateInputs = Collection[tuple[str, str, str]]
"""(cluster, process, name of the input)."""


@dataclass(frozen=True)
class Changed:
    """A succeeded process instance whose late inputs changed.

    Attributes:
        request: The existing request to rerun it.
        arrivals: In the order of inputs and instances.
        newest: Latest instance of the window of each late input, by name.
    """

    record: InstanceRecord
    request: RerunRequest | None
    arrivals: tuple[Arrival, ...]
    newest: Mapping[str, datetime]


def changed(connection: Connection, late_inputs: LateInputs) -> dict[ProcessKey, Changed]:
    """Succeeded instances outside of runs whose late inputs changed, except changes marked as too late.

    Costs grow with the changes, not with the length of history.
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
    there_already = reruns.requests_at(connection, arrivals)
    return {
        key: Changed(records[key], there_already.get(key), tuple(found), newest[key]) for key, found in arrivals.items()
    }


def republished(
    connection: Connection, late_inputs: LateInputs, process: str, cluster: str, nominals: Iterable[datetime]
) -> dict[datetime, list[LateChange]]:
    """Changes by late reruns only."""
    by_late_rerun = and_(CONSUMED.c.stale, FEED_INSTANCES.c.late)
    return _changes(connection, late_inputs, process, cluster, nominals, by_late_rerun)


def changed_since_read(
    connection: Connection, late_inputs: LateInputs, process: str, cluster: str, nominals: Iterable[datetime]
) -> dict[datetime, list[LateChange]]:
    """All changes since the read, regardless of cut-offs."""
    is_other = has_other_rows(CONSUMED.c.version)
    came_after = FEED_INSTANCES.c.version_event > CONSUMED.c.read_event
    is_there = FEED_INSTANCES.c.state == FeedState.AVAILABLE.value
    return _changes(connection, late_inputs, process, cluster, nominals, and_(is_other, came_after, is_there))


def _changes(
    connection: Connection,
    late_inputs: LateInputs,
    process: str,
    cluster: str,
    nominals: Iterable[datetime],
    which: ColumnElement[bool],
) -> dict[datetime, list[LateChange]]:
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
            .where(which, read.process == process, read.cluster == cluster, read.nominal.in_(part))
            .order_by(read.nominal, read.input, read.instance)
        )
        for row in connection.execute(statement):
            change = LateChange(row.input, row.feed, row.instance, row.version, row.after)
            found.setdefault(row.nominal, []).append(change)
    return found


def files_come(connection: Connection, compactions: Collection[ProcessKey], feed: str) -> dict[ProcessKey, int]:
    """How many more files an instance has than its compaction left; one at least, as its version is another."""
    there, made = FEED_INSTANCES.c, DATA_VERSIONS.c
    found: dict[ProcessKey, int] = {}
    for part in parts(compactions):
        own = and_(made.process.in_({key[0] for key in part}), made.feed == feed)
        last = select(made.files).where(own, made.cluster == there.cluster, made.instance == there.instance)
        left = last.order_by(made.made_at.desc()).limit(1).scalar_subquery()
        asked = [(key[1], feed, key[2]) for key in part]
        place = (there.cluster, there.feed, there.instance)
        number = func.greatest(there.files - func.coalesce(left, 0), 1)
        rows = {tuple(row[:3]): row[3] for row in connection.execute(select(*place, number).where(among(place, asked)))}
        found |= {key: rows[at] for key, at in zip(part, asked, strict=True) if at in rows}
    return found


def late_readers(
    connection: Connection, late_inputs: LateInputs, instances: Collection[tuple[str, str, datetime]]
) -> list[ProcessKey]:
    """The process instances that read one of these (cluster, feed, instance); replications read on another cluster."""
    if not late_inputs:
        return []
    asked = _asked(late_inputs)
    read = CONSUMED.c
    found: list[ProcessKey] = []
    for part in parts(instances):
        statement = (
            select(read.process, read.cluster, read.nominal)
            .join_from(CONSUMED, asked, _late_input(asked))
            .where(among((read.input_cluster, read.feed, read.instance), part))
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
            .where(among(own, part))
            .group_by(*own, read.input)
        )
        for row in connection.execute(statement):
            found.setdefault((row.process, row.cluster, row.nominal), {})[row.input] = row.newest
    return found


def _asked(late_inputs: LateInputs) -> TableValuedAlias:
    clusters, processes, inputs = zip(*sorted(late_inputs), strict=True)
    return rows_of(CONSUMED, {"cluster": clusters, "process": processes, "input": inputs})


def _late_input(asked: TableValuedAlias) -> ColumnElement[bool]:
    read = CONSUMED.c
    return and_(read.cluster == asked.c.cluster, read.process == asked.c.process, read.input == asked.c.input)
