"""Instances that a query is about: of each timeline a span, with rows in the ledger and without."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from falcon_assets.instances.store.instance_pages import Counted, InstanceRows, Key, Span, Steps
from falcon_assets.instances.views.query import InstanceQuery, State
from falcon_assets.model.frequency import TimeUnit
from falcon_assets.planning.timeline import Timeline

_MOMENT = timedelta(microseconds=1)
_CHUNK = 50
_LARGEST_CHUNK = 10_000


@dataclass(frozen=True)
class Asked:
    """Instances of an entity, or a replication, on a cluster.

    Attributes:
        open_from: All instances before it have rows, except those that were settled without.
        due: Nothing after it is due; used by queries for due instances only.
        without_row: The state of those that have no row.
    """

    kind: str
    timeline: Timeline
    span: Span
    open_from: datetime
    due: datetime
    without_row: State

    @property
    def key(self) -> tuple[str, str]:
        return self.span.entity, self.span.cluster

    @property
    def indexes(self) -> range:
        """Of those in the timeline that may have no row."""
        first, last = max(self.span.first, self.open_from), min(self.span.last, self.due)
        return self.timeline.indexes(first, last) if first <= last and self.timeline.count else range(0)

    @property
    def steps(self) -> Steps | None:
        """:attr:`indexes` as steps of one length; None: there are none, or they are on a calendar."""
        indexes, timeline = self.indexes, self.timeline
        frequency = timeline.frequency
        is_regular = frequency.is_absolute or (frequency.unit is TimeUnit.DAYS and timeline.timezone == "UTC")
        if not (indexes and is_regular):
            return None
        return Steps(timeline.instance(indexes[0]), timeline.instance(indexes[-1]), frequency.length)

    def cut(self, after: Key | None, *, by_time: bool, descending: bool) -> Asked | None:
        """The part after an instance in that order; None: nothing."""
        if after is None:
            return self
        first, last = self.span.first, self.span.last
        own, other = self.key, after[:2]
        beyond = own < other if descending else own > other
        if by_time or own == other:
            includes = by_time and beyond
            if descending:
                last = min(last, after[2] if includes else after[2] - _MOMENT)
            else:
                first = max(first, after[2] if includes else after[2] + _MOMENT)
        elif not beyond:
            return None
        return replace(self, span=Span(*own, first, last)) if first <= last else None

    def until(self, last: Key, *, by_time: bool, descending: bool) -> Asked | None:
        """The part up to and with an instance in that order; None: nothing."""
        own, other = self.key, last[:2]
        if by_time or own == other:
            begin, end = self.span.first, self.span.last
            begin, end = (max(begin, last[2]), end) if descending else (begin, min(end, last[2]))
            return replace(self, span=Span(*own, begin, end)) if begin <= end else None
        return self if (own > other if descending else own < other) else None

    def beginning(self, *, descending: bool) -> Span | None:
        indexes = next(_chunks(self.indexes, descending=descending), None)
        if not indexes:
            return None
        return Span(*self.key, self.timeline.instance(indexes[0]), self.timeline.instance(indexes[-1]))

    def latest(self, number: int) -> list[datetime]:
        return _nominals(self.timeline, self.indexes[-number:])


def in_order(
    connection: Connection, rows: InstanceRows[Any, Any], asked: Sequence[Asked], query: InstanceQuery
) -> Iterator[tuple[Key, Any]]:
    """The instances with and without rows (None) in the order of the query."""
    states, by_time, descending = query.states, query.by_time, query.descending
    spans = [one.span for one in asked]
    known = rows.first(connection, spans, states, query.limit + 1, by_time=by_time, descending=descending)
    open_ones = [one for one in asked if states is None or one.without_row in states]
    if len(known) > query.limit:  # what comes after all of those is not asked for: nobody goes through it
        last = known[-1][0]
        parts = (one.until(last, by_time=by_time, descending=descending) for one in open_ones)
        open_ones = [one for one in parts if one]

    def order(one: tuple[Key, Any]) -> Any:
        entity, cluster, nominal = one[0]
        return (nominal, entity, cluster) if by_time else one[0]

    def in_turn() -> Iterator[tuple[Key, Any]]:
        for one in sorted(open_ones, key=lambda part: part.key, reverse=descending):
            yield from without_rows(connection, rows, one, {}, descending=descending)

    if not by_time:
        return heapq.merge(known, in_turn(), key=order, reverse=descending)
    begin = [span for one in open_ones if (span := one.beginning(descending=descending))]
    there = rows.instants_in(connection, begin)
    others = (without_rows(connection, rows, one, there, descending=descending) for one in open_ones)
    return heapq.merge(known, *others, key=order, reverse=descending)


def without_rows(
    connection: Connection,
    rows: InstanceRows[Any, Any],
    asked: Asked,
    first: Mapping[tuple[str, str], set[datetime]],
    *,
    descending: bool,
) -> Iterator[tuple[Key, None]]:
    """Those without a row, in order; read in growing chunks, except for rows in ``first``."""
    there = first.get(asked.key)
    for indexes in _chunks(asked.indexes, descending=descending):
        nominals = _nominals(asked.timeline, indexes)
        if there is None:
            there = rows.instants_in(connection, [Span(*asked.key, nominals[0], nominals[-1])])[asked.key]
        for one in reversed(nominals) if descending else nominals:
            if one not in there:
                yield (*asked.key, one), None
        there = None


def counted(
    connection: Connection, rows: InstanceRows[Any, Any], asked: Sequence[Asked], states: frozenset[State] | None
) -> dict[tuple[str, str], dict[State, int]]:
    open_ones = [one for one in asked if states is None or one.without_row in states]
    steps = {one.key: own for one in open_ones if (own := one.steps)}
    counts = rows.counted(connection, [one.span for one in asked], states, steps)
    found = {key: {state: one.number for state, one in own.items() if one.number} for key, own in counts.items()}
    without = unrecorded(connection, rows, open_ones, counts if states is None else None)
    for one in open_ones:
        if number := without[one.key]:
            numbers = found.setdefault(one.key, {})
            numbers[one.without_row] = numbers.get(one.without_row, 0) + number
    order = list(rows.states.__members__.values())
    return {key: dict(sorted(own.items(), key=lambda two: order.index(two[0]))) for key, own in found.items()}


def unrecorded(
    connection: Connection,
    rows: InstanceRows[Any, Any],
    asked: Sequence[Asked],
    counts: Mapping[tuple[str, str], Mapping[Any, Counted]] | None = None,
) -> dict[tuple[str, str], int]:
    """Counts instances without rows, and reads only where there may be some; ``counts``: of all rows, if known."""
    steps = {one.key: own for one in asked if (own := one.steps)}
    stepping = [Span(*key, own.first, own.last) for key, own in steps.items()]
    on_steps = rows.counted(connection, stepping, None, steps) if counts is None else counts
    on_calendars = rows.instants_in(connection, [one.span for one in asked if one.indexes and one.key not in steps])
    found = {}
    for one in asked:
        if one.key in steps:
            found[one.key] = len(one.indexes) - sum(own.on_steps for own in on_steps.get(one.key, {}).values())
        else:  # on a calendar: there are few
            found[one.key] = len(set(_nominals(one.timeline, one.indexes)) - on_calendars.get(one.key, set()))
    return found


def _nominals(timeline: Timeline, indexes: range) -> list[datetime]:
    return list(dict.fromkeys(map(timeline.instance, indexes)))


def _chunks(indexes: range, *, descending: bool) -> Iterator[range]:
    size = _CHUNK
    while indexes:
        yield indexes[-size:] if descending else indexes[:size]
        indexes = indexes[:-size] if descending else indexes[size:]
        size = min(4 * size, _LARGEST_CHUNK)
