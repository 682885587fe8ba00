"""Lists of instances by what their rows say: when they were started last, and how often."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection

from falcon_assets.ledger.instances.instance_pages import Key
from falcon_assets.ledger.instances.process_rows import PROCESS_ROWS
from falcon_assets.operations.instances.due import Asked, without_rows
from falcon_assets.operations.instances.query import InstanceQuery
from falcon_assets.planning.instances.instance_record import InstanceRecord, InstanceState


def by_value(
    connection: Connection, asked: Sequence[Asked], query: InstanceQuery
) -> Iterator[tuple[Key, InstanceRecord | None]]:
    """The instances that are asked for after ``query.after``, with and without rows; None: no row.

    Those with the same value are in the order of their names, in the same direction.
    """
    states, descending, after = query.states, query.descending, query.after_key
    column, start = query.by_value or "", None if after is None else (query.after_value, after)
    limit = query.limit + 1
    spans = [one.span for one in asked]
    known = PROCESS_ROWS.by_value(connection, spans, states, limit, column, start, descending=descending)  # type: ignore[arg-type]
    without = query.value(None)

    def order(one: tuple[Key, InstanceRecord | None]) -> Any:
        return query.value(one[1]), one[0]

    def unrecorded() -> Iterator[tuple[Key, None]]:
        """They all have the same value: those after the start come after it by their names, or all do, or none."""
        begins = None
        if start is not None and start[0] is not None and start[0] != without:
            if (without < start[0]) is not descending:  # type: ignore[operator]  # of one order, of one type
                return
        elif start is not None:
            begins = start[1]
        if states is not None and InstanceState.WAITING not in states:
            return
        for one in sorted(asked, key=lambda part: part.key, reverse=descending):
            if (part := one.cut(begins, by_time=False, descending=descending)) is not None:
                yield from without_rows(connection, PROCESS_ROWS, part, {}, descending=descending)

    return heapq.merge(known, unrecorded(), key=order, reverse=descending)
