"""Totals that are kept beside the rows, in the transactions that write these: to ask for them reads no history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sqlalchemy import ARRAY, ColumnElement, Connection, Numeric, Table, Text, delete, func, literal, select, text
from sqlalchemy.dialects.postgresql import insert

from falcon_assets.history.database import among, parts
from falcon_assets.history.folding.ledger_rows import TotalKey
from falcon_assets.history.folding.reduce import Rows
from falcon_assets.history.tables import SLA_BREACHES, SLA_TOTALS, TOTALS

FEEDS, PROCESSES = "feed", "process"
"""What instances are counted by state: those of feeds, and those of processes and replications."""


class Total(NamedTuple):
    """How many instances, bytes or breaches of one kind there are of an entity on a cluster."""

    what: str
    entity: str
    cluster: str
    label: str
    number: int


def states_in(rows: Rows) -> Counter[TotalKey]:
    """How many of the rows are in which state."""
    found = Counter((FEEDS, feed, cluster, row.state.value) for (cluster, feed, _), row in rows.feeds.items())
    found.update((PROCESSES, name, cluster, row.state.value) for (name, cluster, _), row in rows.processes.items())
    return found


def changes(before: Counter[TotalKey], rows: Rows) -> Counter[TotalKey]:
    """What facts that were applied to rows add to the totals; ``before`` are the states that were in them."""
    found = states_in(rows)
    found.subtract(before)
    found.update(rows.moved)
    return found


def add_totals(connection: Connection, added: Mapping[TotalKey, int]) -> None:
    """Adds to the totals; what comes to nothing has no row."""
    _add(connection, TOTALS, added)
    for part in parts({key for key, number in added.items() if number < 0}):
        key = [TOTALS.c[name] for name in ("what", "entity", "cluster", "label")]
        connection.execute(delete(TOTALS).where(among(key, part), TOTALS.c.number == 0))


def add_breaches(connection: Connection, added: Mapping[TotalKey, int]) -> None:
    """Counts new breaches: kind, entity, cluster and level -> how many."""
    _add(connection, SLA_TOTALS, added)


def _add(connection: Connection, table: Table, added: Mapping[TotalKey, int]) -> None:
    *names, number = (column.name for column in table.c)
    keys = sorted(key for key in added if added[key])
    if not keys:
        return
    # Rows of arrays: VALUES would be compiled anew for each number of them.
    columns: dict[str, ColumnElement[Any]] = {
        name: literal(list(values), ARRAY(Text)) for name, values in zip(names, zip(*keys, strict=True), strict=True)
    }
    columns[number] = literal([added[key] for key in keys], ARRAY(Numeric))
    given = func.unnest(*columns.values()).table_valued(*columns).render_derived(name="given")
    statement = insert(table).from_select([*columns], select(given))
    total = table.c[number] + statement.excluded[number]
    connection.execute(statement.on_conflict_do_update(index_elements=names, set_={number: total}))


def totals(connection: Connection) -> Iterator[Total]:
    """All totals of instances and bytes."""
    return (Total(row[0], row[1], row[2], row[3], int(row[4])) for row in connection.execute(select(TOTALS)))


def breaches(connection: Connection) -> Iterator[Total]:
    """How many breaches of each level there ever were; the label is the level."""
    table = SLA_TOTALS.c
    statement = select(table.kind, table.entity, table.cluster, table.level, table.breaches)
    return (Total(row[0], row[1], row[2], row[3], row[4]) for row in connection.execute(statement))


def open_breaches(connection: Connection) -> Iterator[Total]:
    """How many breaches of each level are open; those alone are read."""
    table = SLA_BREACHES.c
    key = (table.kind, table.entity, table.cluster, table.level)
    statement = select(*key, func.count()).where(text("state = 'OPEN'")).group_by(*key)
    return (Total(row[0], row[1], row[2], row[3], row[4]) for row in connection.execute(statement))
