"""Pages of long lists of instances, found by indexes: few rows are read, however many there are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Interval,
    Table,
    TableValuedAlias,
    and_,
    func,
    select,
    true,
)
from sqlalchemy.types import TypeEngine

from falcon_assets.history.database import INSTANT, TEXT, unnested
from falcon_assets.history.folding.fold import feed_row_of
from falcon_assets.history.tables import FEED_INSTANCES
from falcon_assets.planning.instance_record import FeedState

State = TypeVar("State", bound=Enum)
Row = TypeVar("Row")

Key: TypeAlias = tuple[str, str, datetime]
"""Entity, cluster and nominal time."""
Name: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class Span:
    """Both ends are included."""

    entity: str
    cluster: str
    first: datetime
    last: datetime


class Steps(NamedTuple):
    """Both ends are included."""

    first: datetime
    last: datetime
    length: timedelta


class Counted(NamedTuple):
    number: int
    on_steps: int


@dataclass(frozen=True)
class InstanceRows(Generic[State, Row]):
    """Rows of instances of one type; ``table`` needs indexes of entity, cluster and time, with and without state."""

    table: Table
    entity: Column[str]
    instant: Column[datetime]
    states: type[State]
    record: Callable[[Any], Row]

    def first(
        self,
        connection: Connection,
        spans: Sequence[Span],
        states: Collection[State] | None,
        limit: int,
        *,
        by_time: bool,
        descending: bool,
    ) -> list[tuple[Key, Row]]:
        """Returns the first rows in spans; at most one span per entity and cluster is allowed.

        ``by_time`` orders by nominal time, entity, cluster; else the order is entity, cluster, nominal time.
        """
        if not spans or states == frozenset():
            return []
        asked = asked_rows(spans, states)
        found = self._of_each(asked, states, limit, descending=descending)
        return self._sorted(connection, asked, found, limit, by_time=by_time, descending=descending)

    def _sorted(
        self,
        connection: Connection,
        asked: TableValuedAlias,
        found: Any,
        limit: int,
        *,
        by_time: bool,
        descending: bool,
    ) -> list[tuple[Key, Row]]:
        instant = found.c[self.instant.name]
        names = [found.c[self.entity.name].collate("C"), found.c.cluster.collate("C")]
        order: list[ColumnElement[Any]] = [instant, *names] if by_time else [*names, instant]
        statement = (
            select(found)
            .select_from(asked.join(found, true()))
            .order_by(*(one.desc() if descending else one.asc() for one in order))
            .limit(limit)
        )
        return [(self._key(row), self.record(row)) for row in connection.execute(statement)]

    def latest(self, connection: Connection, spans: Sequence[Span], number: int) -> list[tuple[Key, Row]]:
        """At most ``number`` of each span, in no order."""
        if not spans:
            return []
        asked = asked_rows(spans, None)
        found = self._of_each(asked, None, number, descending=True)
        statement = select(found).select_from(asked.join(found, true()))
        return [(self._key(row), self.record(row)) for row in connection.execute(statement)]

    def some(self, connection: Connection, keys: Collection[Key]) -> dict[Key, Row]:
        if not keys:
            return {}
        entities, clusters, instants = zip(*keys, strict=True)
        asked = unnested(entity=(TEXT, entities), cluster=(TEXT, clusters), instant=(INSTANT, instants))
        own = and_(self._is(asked), self.instant == asked.c.instant)
        found = select(self.table).where(own).lateral("found")
        statement = select(found).select_from(asked.join(found, true()))
        return {self._key(row): self.record(row) for row in connection.execute(statement)}

    def counted(
        self,
        connection: Connection,
        spans: Sequence[Span],
        states: Collection[State] | None,
        steps: Mapping[Name, Steps],
    ) -> dict[Name, dict[State, Counted]]:
        """Counts by one statement, on indexes only, and separately the rows whose time is one of ``steps``."""
        if not spans or states == frozenset():
            return {}
        asked, state = asked_rows(spans, states, steps), self.table.c.state
        on_step = and_(
            self.instant.between(asked.c.first_step, asked.c.last_step),
            func.date_bin(asked.c.step, self.instant, asked.c.first_step) == self.instant,
        )
        numbers = (func.count().label("number"), func.count().filter(on_step).label("on_steps"))
        found = select(state, *numbers).where(self._own(asked, states)).group_by(state).lateral("found")
        columns = (asked.c.entity, asked.c.cluster, found.c.state, found.c.number, found.c.on_steps)
        counts: dict[Name, dict[State, Counted]] = {}
        for entity, cluster, own, *both in connection.execute(select(*columns).join_from(asked, found, true())):
            counts.setdefault((entity, cluster), {})[self.states(own)] = Counted(*both)
        return counts

    def instants_in(self, connection: Connection, spans: Sequence[Span]) -> dict[Name, set[datetime]]:
        if not spans:
            return {}
        asked = asked_rows(spans, None)
        instants = func.array_agg(self.instant).label("instants")
        found = select(instants).where(self._own(asked, None)).lateral("found")
        statement = select(asked.c.entity, asked.c.cluster, found.c.instants).join_from(asked, found, true())
        return {(entity, cluster): set(those or ()) for entity, cluster, those in connection.execute(statement)}

    def _of_each(
        self, asked: TableValuedAlias, states: Collection[State] | None, limit: int, *, descending: bool
    ) -> Any:
        """Of each span, or each of its states."""
        instant = self.instant.desc() if descending else self.instant.asc()
        return select(self.table).where(self._own(asked, states)).order_by(instant).limit(limit).lateral("found")

    def _own(self, asked: TableValuedAlias, states: Collection[State] | None) -> ColumnElement[bool]:
        own = and_(self._is(asked), self.instant.between(asked.c.first, asked.c.last))
        return own if states is None else and_(own, self.table.c.state == asked.c.state)

    def _is(self, asked: TableValuedAlias) -> ColumnElement[bool]:
        return and_(self.entity == asked.c.entity, self.table.c.cluster == asked.c.cluster)

    def _key(self, row: Any) -> Key:
        said = row._mapping
        return said[self.entity.name], said["cluster"], said[self.instant.name]


FEED_ROWS = InstanceRows(FEED_INSTANCES, FEED_INSTANCES.c.feed, FEED_INSTANCES.c.instance, FeedState, feed_row_of)


def asked_rows(
    spans: Sequence[Span], states: Collection[Enum] | None, steps: Mapping[Name, Steps] | None = None
) -> TableValuedAlias:
    """A row for each span and state: the index on states has one state after the other."""
    pairs = [(span, state) for span in spans for state in (states if states is not None else (None,))]
    columns: dict[str, tuple[TypeEngine[Any], Iterable[Any]]] = {
        "entity": (TEXT, [one.entity for one, _ in pairs]),
        "cluster": (TEXT, [one.cluster for one, _ in pairs]),
        "first": (INSTANT, [one.first for one, _ in pairs]),
        "last": (INSTANT, [one.last for one, _ in pairs]),
    }
    if states is not None:
        columns["state"] = TEXT, [state.value for _, state in pairs if state is not None]
    if steps is not None:
        own = [steps.get((one.entity, one.cluster)) for one, _ in pairs]
        columns["first_step"] = INSTANT, [one and one.first for one in own]
        columns["last_step"] = INSTANT, [one and one.last for one in own]
        columns["step"] = Interval(), [one and one.length for one in own]
    return unnested(**columns)
