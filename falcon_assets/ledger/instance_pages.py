"""Parts of long lists of process instances, each found by an index: however many rows there are, few are read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Connection,
    DateTime,
    TableValuedAlias,
    Text,
    and_,
    cast,
    func,
    literal,
    select,
    true,
)

from falcon_assets.ledger.fold import record_of
from falcon_assets.ledger.tables import PROCESS_INSTANCES
from falcon_assets.planning.instances.instance_record import InstanceRecord, InstanceState

_TABLE = PROCESS_INSTANCES.c


@dataclass(frozen=True)
class Span:
    """Instances of a process, or a replication, on a cluster; both ends are included."""

    process: str
    cluster: str
    first: datetime
    last: datetime


@dataclass(frozen=True)
class Steps:
    """Equal steps, of which some may have rows."""

    span: Span
    start: datetime
    seconds: int


def rows_of(
    connection: Connection,
    spans: Sequence[Span],
    states: Collection[InstanceState] | None,
    limit: int,
    *,
    by_time: bool,
    descending: bool,
) -> list[tuple[str, str, InstanceRecord]]:
    """The first rows in the spans: process, cluster and what is known.

    Args:
        connection: The database.
        spans: At most one for each process and cluster.
        states: Only those in one of these states; None: all.
        limit: How many at most.
        by_time: Ordered by nominal time, process, cluster; else by process, cluster, nominal time.
        descending: The other way round.
    """
    if not spans or states == frozenset():
        return []
    asked = _asked(spans, states)
    own = _own(asked, states)
    nominal = _TABLE.nominal.desc() if descending else _TABLE.nominal.asc()
    found = select(PROCESS_INSTANCES).where(own).order_by(nominal).limit(limit).lateral("found")
    names = [found.c.process.collate("C"), found.c.cluster.collate("C")]
    order: list[ColumnElement[Any]] = [found.c.nominal, *names] if by_time else [*names, found.c.nominal]
    statement = (
        select(found)
        .select_from(asked.join(found, true()))
        .order_by(*(one.desc() if descending else one.asc() for one in order))
        .limit(limit)
    )
    return [(row.process, row.cluster, record_of(row)) for row in connection.execute(statement)]


def counted(
    connection: Connection, spans: Sequence[Span], states: Collection[InstanceState] | None
) -> dict[tuple[str, str], dict[InstanceState, int]]:
    """(process, cluster) -> state -> how many rows in its span are in it."""
    if not spans or states == frozenset():
        return {}
    asked = _asked(spans, states)
    counts = select(_TABLE.state, func.count().label("number")).where(_own(asked, states)).group_by(_TABLE.state)
    found = counts.lateral("found")
    statement = select(asked.c.process, asked.c.cluster, found.c.state, found.c.number).join_from(asked, found, true())
    numbers: dict[tuple[str, str], dict[InstanceState, int]] = {}
    for process, cluster, state, number in connection.execute(statement):
        numbers.setdefault((process, cluster), {})[InstanceState(state)] = number
    return numbers


def nominals_in(connection: Connection, span: Span) -> set[datetime]:
    """The nominal times in the span that have rows."""
    own = and_(_TABLE.process == span.process, _TABLE.cluster == span.cluster)
    between = _TABLE.nominal.between(span.first, span.last)
    return set(connection.execute(select(_TABLE.nominal).where(own, between)).scalars())


def counted_steps(connection: Connection, steps: Sequence[Steps]) -> dict[tuple[str, str], int]:
    """(process, cluster) -> how many of the steps have rows."""
    if not steps:
        return {}
    spans = _columns([one.span for one in steps])
    starts = literal([int(one.start.timestamp()) for one in steps], ARRAY(BigInteger))
    lengths = literal([one.seconds for one in steps], ARRAY(BigInteger))
    asked = func.unnest(*spans.values(), starts, lengths).table_valued(*spans, "start", "seconds")
    asked = asked.render_derived(name="asked")
    since = cast(func.extract("epoch", _TABLE.nominal), BigInteger) - asked.c.start
    found = select(func.count().label("number")).where(_own(asked, None), since % asked.c.seconds == 0).lateral("found")
    statement = select(asked.c.process, asked.c.cluster, found.c.number).join_from(asked, found, true())
    return {(process, cluster): number for process, cluster, number in connection.execute(statement)}


def _own(asked: TableValuedAlias, states: Collection[InstanceState] | None) -> ColumnElement[bool]:
    own = and_(
        _TABLE.process == asked.c.process,
        _TABLE.cluster == asked.c.cluster,
        _TABLE.nominal.between(asked.c.first, asked.c.last),
    )
    return own if states is None else and_(own, _TABLE.state == asked.c.state)


def _asked(spans: Sequence[Span], states: Collection[InstanceState] | None) -> TableValuedAlias:
    """A row for each span, and each state: the index on states has one state after the other."""
    if states is None:
        columns = _columns(spans)
    else:
        pairs = [(span, state.value) for span in spans for state in states]
        columns = {**_columns([span for span, _ in pairs]), "state": _texts(state for _, state in pairs)}
    return func.unnest(*columns.values()).table_valued(*columns).render_derived(name="asked")


def _columns(spans: Sequence[Span]) -> dict[str, ColumnElement[Any]]:
    instants = ARRAY(DateTime(timezone=True))
    return {
        "process": _texts(one.process for one in spans),
        "cluster": _texts(one.cluster for one in spans),
        "first": literal([one.first for one in spans], instants),
        "last": literal([one.last for one in spans], instants),
    }


def _texts(items: Iterable[str]) -> ColumnElement[Any]:
    return literal(list(items), ARRAY(Text))
