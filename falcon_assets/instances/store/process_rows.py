"""The rows of instances of processes and replications; requested reruns count as WAITING, regardless of their row."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Connection,
    Row,
    TableValuedAlias,
    Text,
    and_,
    exists,
    func,
    literal,
    or_,
    select,
    tuple_,
    update,
)

from falcon_assets.history.database import upsert
from falcon_assets.history.folding.fold import record_of
from falcon_assets.history.tables import LOOKS, PROCESS_INSTANCES, RERUNS
from falcon_assets.instances.rules.looks import Looks
from falcon_assets.instances.store.instance_pages import Counted, InstanceRows, Key, Name, Span, Steps, asked_rows
from falcon_assets.instances.store.reruns import waiting
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState

_WAITING = InstanceState.WAITING
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


class _ProcessRows(InstanceRows[InstanceState, InstanceRecord]):
    def first(
        self,
        connection: Connection,
        spans: Sequence[Span],
        states: Collection[InstanceState] | None,
        limit: int,
        *,
        by_time: bool,
        descending: bool,
    ) -> list[tuple[Key, InstanceRecord]]:
        rows = super().first(connection, spans, states, limit, by_time=by_time, descending=descending)
        if states is None or _WAITING not in states or not spans:
            return rows
        asked = asked_rows(spans, None)
        instant = self.instant.desc() if descending else self.instant.asc()
        again = select(self.table).join_from(RERUNS, self.table, waiting()).where(self._own(asked, None))
        found = again.order_by(instant).limit(limit).lateral("found")
        rows += self._sorted(connection, asked, found, limit, by_time=by_time, descending=descending)

        def order(row: tuple[Key, InstanceRecord]) -> tuple[Any, ...]:
            entity, cluster, nominal = row[0]
            return (nominal, entity, cluster) if by_time else row[0]

        return sorted(rows, key=order, reverse=descending)[:limit]

    def by_value(
        self,
        connection: Connection,
        spans: Sequence[Span],
        states: Collection[InstanceState] | None,
        limit: int,
        column: str,
        after: tuple[Any, Key] | None,
        *,
        descending: bool,
    ) -> list[tuple[Key, InstanceRecord]]:
        """Orders by a column (``started`` or ``attempt``), then entity, cluster and nominal time.

        Requested reruns count as WAITING. Instances never started are last, at the end of time (descending: its
        beginning). ``after`` has the value and the key of the last row of the page before.
        """
        if not spans or states == frozenset():
            return []
        asked, table = asked_rows(spans, None), self.table
        value: ColumnElement[Any] = table.c[column]
        if column == "started":
            value = func.coalesce(value, _FIRST if descending else _LAST)
        names = [value, self.entity.collate("C"), table.c.cluster.collate("C"), self.instant]
        wanted = select(table).join_from(table, asked, self._own(asked, None))
        if states is not None:
            is_again = exists().select_from(RERUNS).where(waiting())
            said = and_(table.c.state.in_([one.value for one in states]), ~is_again)
            wanted = wanted.where(or_(said, is_again) if _WAITING in states else said)
        if after is not None:
            there, given = tuple_(*names), tuple_(*(literal(one) for one in (after[0], *after[1])))
            wanted = wanted.where(there < given if descending else there > given)
        order = (one.desc() if descending else one.asc() for one in names)
        return [(self._key(row), self.record(row)) for row in connection.execute(wanted.order_by(*order).limit(limit))]

    def counted(
        self,
        connection: Connection,
        spans: Sequence[Span],
        states: Collection[InstanceState] | None,
        steps: Mapping[Name, Steps],
    ) -> dict[Name, dict[InstanceState, Counted]]:
        counts = super().counted(connection, spans, states, steps)
        for again in self.to_run_again(connection, spans):
            own = counts.setdefault((again.process, again.cluster), {})
            for state, change in ((InstanceState(again.state), -again.number), (_WAITING, again.number)):
                if states is None or state in states:
                    before = own.get(state, Counted(0, 0))
                    own[state] = Counted(before.number + change, before.on_steps)
        return counts

    def to_run_again(self, connection: Connection, spans: Sequence[Span]) -> Sequence[Row[Any]]:
        """Rows of process, cluster, state and number."""
        if not spans:
            return ()
        asked, table = asked_rows(spans, None), PROCESS_INSTANCES.c
        columns = (table.process, table.cluster, table.state)
        again = select(*columns, func.count().label("number")).join_from(RERUNS, self.table, waiting())
        return connection.execute(again.join(asked, self._own(asked, None)).group_by(*columns)).all()

    def _of_each(
        self, asked: TableValuedAlias, states: Collection[InstanceState] | None, limit: int, *, descending: bool
    ) -> Any:
        if states is None:
            return super()._of_each(asked, states, limit, descending=descending)
        instant = self.instant.desc() if descending else self.instant.asc()
        is_again = exists().select_from(RERUNS).where(waiting())
        own = select(self.table).where(self._own(asked, states), ~is_again)
        return own.order_by(instant).limit(limit).lateral("found")


PROCESS_ROWS = _ProcessRows(
    PROCESS_INSTANCES, PROCESS_INSTANCES.c.process, PROCESS_INSTANCES.c.nominal, InstanceState, record_of
)


_IN_VAIN = (InstanceState.FAILED, InstanceState.TIMED_OUT, InstanceState.KILLED, InstanceState.SKIPPED)


def looks_at(connection: Connection, cluster: str, processes: Collection[str]) -> dict[str, Looks]:
    table = LOOKS.c
    own = (table.cluster == cluster, _is_among(processes))
    statement = select(table.process, table.last, table.woke, table.slept).where(*own)
    return {row.process: Looks(row.last, row.woke, row.slept) for row in connection.execute(statement)}


def set_looks(connection: Connection, cluster: str, looks: Mapping[str, Looks]) -> None:
    rows = [{"process": process, "cluster": cluster, **vars(one)} for process, one in looks.items()]
    upsert(connection, LOOKS, rows)


def look_again(connection: Connection, cluster: str, processes: Collection[str], now: datetime) -> None:
    """Notes another look at instances of processes that were looked at before, without a pause."""
    own = (LOOKS.c.cluster == cluster, _is_among(processes), LOOKS.c.last < now)
    connection.execute(update(LOOKS).where(*own).values(last=now))


def _is_among(processes: Collection[str]) -> ColumnElement[bool]:
    return LOOKS.c.process == func.any(literal(list(processes), ARRAY(Text)))


def ended_since(
    connection: Connection, process: str, cluster: str, since: datetime
) -> dict[datetime, tuple[datetime, InstanceState]]:
    """When those that did not succeed ended, and how."""
    table = PROCESS_INSTANCES.c
    in_vain = table.state.in_([one.value for one in _IN_VAIN])
    own = (table.process == process, table.cluster == cluster, in_vain, table.ended >= since)
    rows = connection.execute(select(table.nominal, table.ended, table.state).where(*own))
    return {row.nominal: (row.ended, InstanceState(row.state)) for row in rows}
