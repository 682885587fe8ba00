"""Queries for decisions; each is one statement for any number of entities."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from sqlalchemy import (
    ARRAY,
    Column,
    Connection,
    Integer,
    TableClause,
    Text,
    and_,
    exists,
    func,
    literal,
    or_,
    select,
    text,
    true,
    union_all,
)

from falcon_assets.history.database import INSTANT, TEXT, unnested, upsert
from falcon_assets.history.folding.fold import record_of
from falcon_assets.history.tables import COLLECTED, FEED_INSTANCES, OPEN, PROCESS_INSTANCES, PROGRESS
from falcon_assets.planning.instance_record import FeedState, InstanceRecord, InstanceState

Name: TypeAlias = tuple[str, str]

_OPEN_STATES = (InstanceState.RUNNING, InstanceState.WAITING, InstanceState.SUSPENDED)


def available(connection: Connection, spans: Mapping[Name, tuple[datetime, datetime]]) -> dict[Name, set[datetime]]:
    """Returns the available instances of feeds, each within its span (both ends included), as the next two."""
    if not spans:
        return {}
    found = _within_spans(connection, spans, [FEED_INSTANCES.c.instance], FeedState.AVAILABLE)
    return {(cluster, feed): set(instances) for cluster, feed, instances in found if instances}


def known_instances(connection: Connection, kind: str, name: str) -> int:
    table, of = (
        (FEED_INSTANCES, FEED_INSTANCES.c.feed) if kind == "feed" else (PROCESS_INSTANCES, PROCESS_INSTANCES.c.process)
    )
    return connection.execute(select(func.count()).select_from(table).where(of == name)).scalar_one()


def available_feeds(connection: Connection, cluster: str) -> dict[str, int]:
    table = FEED_INSTANCES.c
    there = select(table.feed, func.count()).where(table.cluster == cluster, table.state == FeedState.AVAILABLE.value)
    return {row[0]: row[1] for row in connection.execute(there.group_by(table.feed))}


def evicted(
    connection: Connection, spans: Mapping[Name, tuple[datetime, datetime]]
) -> dict[Name, dict[datetime, datetime]]:
    """Returns, by feed, instance -> time of its eviction."""
    if not spans:
        return {}
    columns = [FEED_INSTANCES.c.instance, FEED_INSTANCES.c.evicted_at]
    found = _within_spans(connection, spans, columns, FeedState.EVICTED)
    return {
        (cluster, feed): dict(zip(*aggregated, strict=True)) for cluster, feed, *aggregated in found if all(aggregated)
    }


def signatures(
    connection: Connection, spans: Mapping[Name, tuple[datetime, datetime]]
) -> dict[Name, dict[datetime, str | None]]:
    """Returns the signatures, of evicted instances too; not of withdrawn ones, as collectors look for them anew."""
    if not spans:
        return {}
    columns = [FEED_INSTANCES.c.instance, FEED_INSTANCES.c.signature]
    found = _within_spans(connection, spans, columns, FeedState.AVAILABLE, FeedState.EVICTED)
    return {
        (cluster, feed): dict(zip(*aggregated, strict=True)) for cluster, feed, *aggregated in found if all(aggregated)
    }


def seen(connection: Connection, cluster: str, since: Mapping[str, datetime]) -> dict[str, dict[datetime, datetime]]:
    """Returns, by feed, available instance on a cluster -> when its present version was seen.

    Limited to instances that were seen, or whose nominal time is, after the feed's time in ``since``.
    """
    if not since:
        return {}
    asked = unnested(feed=(TEXT, since), since=(INSTANT, since.values()))
    table = FEED_INSTANCES.c
    own = and_(table.cluster == cluster, table.feed == asked.c.feed, table.state == FeedState.AVAILABLE.value)
    young = or_(table.seen_at > asked.c.since, table.instance > asked.c.since)
    found: dict[str, dict[datetime, datetime]] = {}
    statement = select(table.feed, table.instance, table.seen_at).join_from(asked, FEED_INSTANCES, own).where(young)
    for feed, instance, seen_at in connection.execute(statement):
        found.setdefault(feed, {})[instance] = seen_at
    return found


def records(
    connection: Connection,
    cluster: str,
    open_from: Mapping[str, datetime],
    attempts: Mapping[str, int] | None = None,
) -> dict[str, dict[datetime, InstanceRecord]]:
    """Returns the records of processes on a cluster, each from an instance on, and the open ones before it.

    Open: in flight, suspended, waiting again after a run that a user started; or failed at most as often as
    ``attempts`` says (process -> number of retries; none without an entry).
    """
    if not open_from:
        return {}
    tried = [(attempts or {}).get(process, 0) for process in open_from]
    asked = unnested(process=(TEXT, open_from), first=(INSTANT, open_from.values()), attempts=(Integer(), tried))
    table = PROCESS_INSTANCES.c
    own = and_(table.cluster == cluster, table.process == asked.c.process)
    is_open_state = table.state.in_([state.value for state in _OPEN_STATES])
    is_queued = table.queued_run.is_not(None)
    is_failed = and_(table.state == InstanceState.FAILED.value, table.failures <= asked.c.attempts)
    # Process by process (OFFSET 0: PostgreSQL is not to join the tables as a whole instead), each part by its index:
    # what is settled is not read, however much it is.
    is_open = select(PROCESS_INSTANCES).where(own, table.nominal >= asked.c.first).offset(0).lateral("open")
    before = select(PROCESS_INSTANCES).where(own, table.nominal < asked.c.first)
    if any(tried):
        earlier = [before.where(or_(is_queued, is_open_state, is_failed), text(f"({OPEN})"))]
    else:  # those that failed are not read at all: by the state, and by the run
        earlier = [before.where(is_open_state), before.where(is_queued, ~is_open_state)]
    parts = [is_open, *(one.offset(0).lateral(f"before_{number}") for number, one in enumerate(earlier))]
    statement = union_all(*(select(part).select_from(asked).join(part, true()) for part in parts))
    found: dict[str, dict[datetime, InstanceRecord]] = {name: {} for name in open_from}
    for row in connection.execute(statement):
        found[row.process][row.nominal] = record_of(row)
    return found


def some_records(
    connection: Connection, process: str, cluster: str, nominals: Sequence[datetime]
) -> dict[datetime, InstanceRecord]:
    """Returns the records of those instances of a process; instances that never had a run are missing."""
    table = PROCESS_INSTANCES.c
    own = and_(table.process == process, table.cluster == cluster, table.nominal.in_(nominals))
    return {row.nominal: record_of(row) for row in connection.execute(select(PROCESS_INSTANCES).where(own))}


def begun(connection: Connection, run_ids: Sequence[str]) -> dict[str, set[Name]]:
    table = PROCESS_INSTANCES.c
    statement = (
        select(table.run_id, table.process, table.cluster)
        .where(table.run_id.in_(run_ids), table.state == InstanceState.RUNNING.value)
        .distinct()
    )
    found: dict[str, set[Name]] = {}
    for run_id, process, cluster in connection.execute(statement):
        found.setdefault(run_id, set()).add((process, cluster))
    return found


def in_flight_without_run(
    connection: Connection, processes: Collection[str], runs: TableClause
) -> dict[Name, list[datetime]]:
    """Returns (process, cluster) -> instances in flight in a run that Dagster's table ``runs`` does not have."""
    own = PROCESS_INSTANCES.c
    in_flight = or_(own.queued_run.is_not(None), own.state == InstanceState.RUNNING.value)
    run = runs.c.run_id == func.coalesce(own.queued_run, own.run_id)
    statement = (
        select(own.process, own.cluster, func.array_agg(own.nominal))
        .where(own.process.in_(processes), text(f"({OPEN})"), in_flight, ~exists().select_from(runs).where(run))
        .group_by(own.process, own.cluster)
    )
    return {(process, cluster): sorted(nominals) for process, cluster, nominals in connection.execute(statement)}


def progress(
    connection: Connection, cluster: str, processes: Collection[str] | None = None
) -> dict[tuple[str, str], datetime]:
    """Returns (process, its timeline) -> the instance before which all are settled, as recorded by coordinators.

    ``processes`` None: of all on the cluster.
    """
    table = PROGRESS.c
    statement = select(table.process, table.timeline, table.first_open).where(table.cluster == cluster)
    if processes is not None:
        statement = statement.where(table.process == func.any(literal(list(processes), ARRAY(Text))))
    return {(process, timeline): first_open for process, timeline, first_open in connection.execute(statement)}


def set_progress(connection: Connection, cluster: str, first_open: Mapping[tuple[str, str], datetime]) -> None:
    rows = [
        {"process": process, "cluster": cluster, "timeline": timeline, "first_open": at}
        for (process, timeline), at in first_open.items()
    ]
    upsert(connection, PROGRESS, rows)


def last_collected(connection: Connection, cluster: str) -> dict[str, datetime]:
    statement = select(COLLECTED.c.feed, COLLECTED.c.looked_at).where(COLLECTED.c.cluster == cluster)
    return {row.feed: row.looked_at for row in connection.execute(statement)}


def set_last_collected(connection: Connection, cluster: str, times: Mapping[str, datetime]) -> None:
    upsert(connection, COLLECTED, [{"cluster": cluster, "feed": feed, "looked_at": at} for feed, at in times.items()])


def _within_spans(
    connection: Connection,
    spans: Mapping[Name, tuple[datetime, datetime]],
    columns: Sequence[Column[Any]],
    *states: FeedState,
) -> Iterable[Sequence[Any]]:
    clusters, feeds = zip(*spans, strict=True)
    first, last = zip(*spans.values(), strict=True)
    asked = unnested(cluster=(TEXT, clusters), feed=(TEXT, feeds), first=(INSTANT, first), last=(INSTANT, last))
    table = FEED_INSTANCES.c
    values = (
        select(*(func.array_agg(column).label(column.name) for column in columns))
        .where(
            table.cluster == asked.c.cluster,
            table.feed == asked.c.feed,
            table.instance.between(asked.c.first, asked.c.last),
            table.state.in_([one.value for one in states]),
        )
        .lateral("found")
    )
    return connection.execute(select(asked.c.cluster, asked.c.feed, *values.c).join_from(asked, values, true())).all()


def counts(connection: Connection, run_id: str) -> dict[InstanceState, int]:
    """Returns the number of instances in each state, of those that the run was the last to start."""
    table = PROCESS_INSTANCES.c
    statement = select(table.state, func.count()).where(table.run_id == run_id).group_by(table.state)
    return {InstanceState(state): count for state, count in connection.execute(statement)}
