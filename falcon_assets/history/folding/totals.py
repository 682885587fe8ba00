"""Totals, updated in the transactions that write the rows: reading them costs no scan of the history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sqlalchemy import Connection, Table, delete, func, select, text
from sqlalchemy.dialects.postgresql import insert

from falcon_assets.history.database import among, parts, rows_of
from falcon_assets.history.folding.reduce import Rows
from falcon_assets.history.tables import SLA_BREACHES, SLA_TOTALS, TOTALS
from falcon_assets.history.tables.row_values import TotalKey

FEEDS, PROCESSES = "feed", "process"


class Total(NamedTuple):
    what: str
    entity: str
    cluster: str
    label: str
    number: int


def states_in(rows: Rows) -> Counter[TotalKey]:
    found = Counter((FEEDS, feed, cluster, row.state.value) for (cluster, feed, _), row in rows.feeds.items())
    found.update((PROCESSES, name, cluster, row.state.value) for (name, cluster, _), row in rows.processes.items())
    return found


def changes(before: Counter[TotalKey], rows: Rows) -> Counter[TotalKey]:
    """Returns the change of totals by facts that were applied to the rows; ``before``: the states before."""
    found = states_in(rows)
    found.subtract(before)
    found.update(rows.moved)
    return found


def add_totals(connection: Connection, added: Mapping[TotalKey, int]) -> None:
    """Adds to the totals; deletes those that become zero."""
    _add(connection, TOTALS, added)
    for part in parts({key for key, number in added.items() if number < 0}):
        key = [TOTALS.c[name] for name in ("what", "entity", "cluster", "label")]
        connection.execute(delete(TOTALS).where(among(key, part), TOTALS.c.number == 0))


def add_breaches(connection: Connection, added: Mapping[TotalKey, int]) -> None:
    _add(connection, SLA_TOTALS, added)


def _add(connection: Connection, table: Table, added: Mapping[TotalKey, int]) -> None:
    *names, number = (column.name for column in table.c)
    keys = sorted(key for key in added if added[key])
    if not keys:
        return
    columns = dict(zip(names, zip(*keys, strict=True), strict=True))
    given = rows_of(table, {**columns, number: [added[key] for key in keys]})
    statement = insert(table).from_select([*names, number], select(given))
    total = table.c[number] + statement.excluded[number]
    connection.execute(statement.on_conflict_do_update(index_elements=names, set_={number: total}))


def totals(connection: Connection) -> Iterator[Total]:
    return (Total(row[0], row[1], row[2], row[3], int(row[4])) for row in connection.execute(select(TOTALS)))


def breaches(connection: Connection) -> Iterator[Total]:
    """The label is the level; open breaches are included."""
    table = SLA_TOTALS.c
    statement = select(table.kind, table.entity, table.cluster, table.level, table.breaches)
    return (Total(row[0], row[1], row[2], row[3], row[4]) for row in connection.execute(statement))


def open_breaches(connection: Connection) -> Iterator[Total]:
    table = SLA_BREACHES.c
    key = (table.kind, table.entity, table.cluster, table.level)
    statement = select(*key, func.count()).where(text("state = 'OPEN'")).group_by(*key)
    return (Total(row[0], row[1], row[2], row[3], row[4]) for row in connection.execute(statement))
