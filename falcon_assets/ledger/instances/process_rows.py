"""The rows of instances of processes and replications: what is to be run again waits, whatever its row says."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, TableValuedAlias, exists, func, select

from falcon_assets.ledger.folding.fold import record_of
from falcon_assets.ledger.instances.instance_pages import Counted, InstanceRows, Key, Name, Span, Steps, asked_rows
from falcon_assets.ledger.instances.reruns import waiting
from falcon_assets.ledger.tables import PROCESS_INSTANCES, RERUNS
from falcon_assets.planning.instances.instance_record import InstanceRecord, InstanceState

_WAITING = InstanceState.WAITING


class _ProcessRows(InstanceRows[InstanceState, InstanceRecord]):
    """See :class:`InstanceRows`; records are as the ledger has them."""

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
        """See :meth:`InstanceRows.first`."""
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

    def counted(
        self,
        connection: Connection,
        spans: Sequence[Span],
        states: Collection[InstanceState] | None,
        steps: Mapping[Name, Steps],
    ) -> dict[Name, dict[InstanceState, Counted]]:
        """See :meth:`InstanceRows.counted`."""
        counts = super().counted(connection, spans, states, steps)
        for again in self.to_run_again(connection, spans):
            own = counts.setdefault((again.process, again.cluster), {})
            for state, change in ((InstanceState(again.state), -again.number), (_WAITING, again.number)):
                if states is None or state in states:
                    before = own.get(state, Counted(0, 0))
                    own[state] = Counted(before.number + change, before.on_steps)
        return counts

    def to_run_again(self, connection: Connection, spans: Sequence[Span]) -> Sequence[Row[Any]]:
        """Process, cluster, state in its row, and how many in the spans are to be run again."""
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
"""Those of processes and replications."""
