"""The breaches of SLAs: each is recorded once, and cleared once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, TypeAlias

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Connection,
    DateTime,
    Select,
    TableValuedAlias,
    Text,
    and_,
    func,
    literal,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from falcon_assets.ledger.database.upsert import parts
from falcon_assets.ledger.folding.totals import add_breaches
from falcon_assets.ledger.sla.progress import DeadlineKey, landed, ran
from falcon_assets.ledger.tables import FEED_INSTANCES, PROCESS_INSTANCES, SLA_BREACHES
from falcon_assets.planning.sla.breaches import Breach, Known
from falcon_assets.planning.sla.deadlines import SlaLevel

BreachKey: TypeAlias = tuple[str, str, str, str, datetime]
"""Kind, entity, cluster, level, instance."""

_IS_OPEN = text("sla_breaches.state = 'OPEN'")  # as the index says it
_CHUNK = 10_000
_KEY = ("kind", "entity", "cluster", "level", "instance")


class BreachState(str, Enum):
    """What has become of a breach."""

    OPEN = "OPEN"
    MET = "MET"
    """What was asked for came after all."""
    WITHDRAWN = "WITHDRAWN"
    """Nobody asks for it any more."""


@dataclass(frozen=True)
class OpenBreach:
    """A breach that is open, and what its instance came to meanwhile."""

    key: BreachKey
    deadline: datetime
    known: Known

    @property
    def met_at(self) -> datetime | None:
        """When it was met; None: it is not."""
        return self.known.met_at(SlaLevel(self.key[3]))


@dataclass(frozen=True)
class Cleared:
    """A breach that is not open any more."""

    key: BreachKey
    state: BreachState
    at: datetime


def record_breaches(connection: Connection, found: Sequence[Breach], now: datetime) -> int:
    """Writes the breaches down, those that were met after all as well; returns how many are new."""
    count = 0
    for part in parts(found, _CHUNK):
        columns = [*zip(*(one.deadline.key for one in part), strict=True)]
        states = [(BreachState.OPEN if one.met_at is None else BreachState.MET).value for one in part]
        texts = dict(zip((*_KEY[:4], "state"), (*columns, states), strict=True))
        instants: dict[str, Sequence[Any]] = {
            "instance": [one.instance for one in part],
            "deadline": [one.at for one in part],
            "recorded_at": [now] * len(part),
            "cleared_at": [one.met_at for one in part],
        }
        rows = _rows(texts, instants)
        statement = insert(SLA_BREACHES).from_select([*texts, *instants], select(rows)).on_conflict_do_nothing()
        new = connection.execute(statement.returning(*(SLA_BREACHES.c[name] for name in _KEY[:-1]))).all()
        add_breaches(connection, Counter((row[0], row[1], row[2], row[3]) for row in new))
        count += len(new)
    return count


def changed_since(connection: Connection, cluster: str, event_id: int) -> list[OpenBreach]:
    """The open breaches on a cluster whose instances have changed since that event; others are not read."""
    table, feeds, runs = SLA_BREACHES.c, FEED_INSTANCES.c, PROCESS_INSTANCES.c
    of_feed = and_(
        table.kind == "feed",
        table.entity == feeds.feed,
        table.cluster == feeds.cluster,
        table.instance == feeds.instance,
    )
    of_process = and_(
        table.kind == "process",
        table.entity == runs.process,
        table.cluster == runs.cluster,
        table.instance == runs.nominal,
    )
    key, mine = [table[name] for name in _KEY], table.cluster == cluster
    landings: Select[Any] = (
        select(*key, table.deadline, feeds.landed_at, feeds.looked_before, feeds.changes)
        .join_from(FEED_INSTANCES, SLA_BREACHES, of_feed)
        .where(feeds.event_id > event_id, mine, _IS_OPEN)
    )
    states: Select[Any] = (
        select(*key, table.deadline, runs.first_started, runs.first_succeeded, runs.state)
        .join_from(PROCESS_INSTANCES, SLA_BREACHES, of_process)
        .where(runs.event_id > event_id, mine, _IS_OPEN)
    )
    found = [_open(row, landed(*row[6:])) for row in connection.execute(landings)]
    return found + [_open(row, ran(*row[6:])) for row in connection.execute(states)]


def _open(row: Any, known: Known) -> OpenBreach:
    return OpenBreach((row[0], row[1], row[2], row[3], row[4]), row[5], known)


def open_instances(connection: Connection, cluster: str) -> dict[DeadlineKey, list[datetime]]:
    """Deadline on a cluster -> the instances that breach it now."""
    table = SLA_BREACHES.c
    names = [table[name] for name in _KEY[:-1]]
    statement = select(*names, func.array_agg(table.instance)).where(table.cluster == cluster, _IS_OPEN)
    found = connection.execute(statement.group_by(*names))
    return {(row[0], row[1], row[2], row[3]): row[4] for row in found}


def clear_breaches(connection: Connection, cleared: Sequence[Cleared]) -> None:
    """Writes down what became of open breaches."""
    for part in parts(cleared, _CHUNK):
        columns = [*zip(*(one.key for one in part), strict=True)]
        texts = dict(zip((*_KEY[:4], "state"), (*columns[:4], [one.state.value for one in part]), strict=True))
        gone = _rows(texts, {"instance": columns[4], "at": [one.at for one in part]})
        same = and_(*(SLA_BREACHES.c[name] == gone.c[name] for name in _KEY))
        values = {"state": gone.c.state, "cleared_at": gone.c.at}
        connection.execute(update(SLA_BREACHES).values(values).where(same, _IS_OPEN))


def _rows(texts: Mapping[str, Sequence[Any]], instants: Mapping[str, Sequence[Any]]) -> TableValuedAlias:
    """Rows of arrays: VALUES would be compiled anew for each number of them."""
    columns: dict[str, ColumnElement[Any]] = {
        **{name: literal(list(values), ARRAY(Text)) for name, values in texts.items()},
        **{name: literal(list(values), ARRAY(DateTime(timezone=True))) for name, values in instants.items()},
    }
    return func.unnest(*columns.values()).table_valued(*columns).render_derived(name="given")
