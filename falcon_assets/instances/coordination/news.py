"""What is new since a coordinator looked last: one statement tells whether there is anything."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import BigInteger, ColumnElement, Connection, ScalarSelect, Select, Text, func, literal, select, union
from sqlalchemy.dialects.postgresql import aggregate_order_by

from falcon_assets.history.dagster_internals.tables import RUNS, UNFINISHED, folded_type_after
from falcon_assets.history.tables import ENTITY_STATUS, FEED_INSTANCES, FOLD, PROCESS_INSTANCES, RERUNS
from falcon_assets.instances.rules.standing import ENTITY, FEED, WORKLOAD, Subject

StatusRow: TypeAlias = tuple[str, datetime]
"""The status of an entity, and since when."""


class Mark(NamedTuple):
    """Where the tables are; equal ones lead to equal decisions, until a time has come.

    Attributes:
        said: The latest event of Dagster's that said something that the ledger has.
        unfolded: The latest that may say something that it does not have yet; 0: there is none.
        runs: The runs that have not ended.
        statuses: A digest of the statuses of entities, and ``reruns`` one of the requested reruns.
    """

    said: int
    unfolded: int
    runs: str
    statuses: int
    reruns: int


def mark_of(connection: Connection) -> Mark:
    said, unfolded, runs, statuses, reruns = connection.execute(_MARK).one()
    return Mark(said, unfolded, runs, statuses, reruns)


def _digest(names: Sequence[ColumnElement[str]], numbers: Sequence[ColumnElement[Any]]) -> ScalarSelect[Any]:
    """A sum, so that it does not depend on the order of rows."""
    row = func.hashtextextended(func.concat_ws("/", *names), sum(numbers[1:], numbers[0]).cast(BigInteger))
    return select(func.coalesce(func.sum(row % (1 << 40)), 0).cast(BigInteger)).scalar_subquery()


def _microseconds(instant: ColumnElement[datetime]) -> ColumnElement[Any]:
    return func.extract("epoch", instant) * 1_000_000


def _mark() -> Select[Any]:
    status, asked, run = ENTITY_STATUS.c, RERUNS.c, RUNS.c
    unfinished = select(func.coalesce(func.string_agg(run.run_id, aggregate_order_by(literal(","), run.run_id)), ""))
    cursor = func.coalesce(select(FOLD.c.event_id).scalar_subquery(), 0)
    return select(
        func.coalesce(select(FOLD.c.fact_id).scalar_subquery(), 0),
        func.coalesce(folded_type_after(cursor).scalar_subquery(), 0),
        unfinished.where(run.status.in_(UNFINISHED)).scalar_subquery(),
        _digest([status.kind, status.name, status.status], [_microseconds(status.since)]),
        _digest(
            [asked.process, asked.cluster, asked.kind, asked.nominal.cast(Text), asked.attempt.cast(Text)],
            [_microseconds(asked.requested_at), asked.failures],
        ),
    )


_MARK = _mark()


def touched(connection: Connection, since: int) -> set[Subject]:
    """Feeds and workloads with instances that events after that one are about."""
    feed, process = FEED_INSTANCES.c, PROCESS_INSTANCES.c
    feeds = select(literal(FEED), feed.cluster, feed.feed).where(feed.event_id > since)
    workloads = select(literal(WORKLOAD), process.cluster, process.process).where(process.event_id > since)
    return {(what, cluster, name) for what, cluster, name in connection.execute(union(feeds, workloads))}


def status_rows(connection: Connection) -> dict[Subject, StatusRow]:
    status = ENTITY_STATUS.c
    rows = connection.execute(select(status.kind, status.name, status.status, status.since))
    return {(ENTITY, kind, name): (said, since) for kind, name, said, since in rows}
