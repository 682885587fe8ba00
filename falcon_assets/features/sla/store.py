"""Progress of the evaluation of SLAs, and breaches; each query is a statement or two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Select,
    Table,
    and_,
    delete,
    func,
    select,
    text,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from falcon_assets.features.sla.rules import Breach, Known
from falcon_assets.history.database import INSTANT, TEXT, parts, rows_of, unnested, upsert
from falcon_assets.history.folding.totals import add_breaches
from falcon_assets.history.tables import (
    FEED_INSTANCES,
    FOLD,
    PROCESS_INSTANCES,
    SLA_BREACHES,
    SLA_EVALUATIONS,
    SLA_PROGRESS,
)
from falcon_assets.model.sla import SlaLevel
from falcon_assets.model.wall_clock import MICROSECOND
from falcon_assets.planning.instance_record import InstanceState

DeadlineKey: TypeAlias = tuple[str, str, str, str]
"""Kind, entity, cluster, level."""

_NOT_EXPECTED = (InstanceState.SKIPPED.value, InstanceState.SUSPENDED.value)


@dataclass(frozen=True)
class Evaluation:
    """The last evaluation on a cluster: its time on the falcon clock, and the latest folded event."""

    at: datetime
    event_id: int


def last_evaluation(connection: Connection, cluster: str) -> Evaluation | None:
    found = connection.execute(select(SLA_EVALUATIONS).where(SLA_EVALUATIONS.c.cluster == cluster)).first()
    return Evaluation(found.at, found.event_id) if found else None


def set_evaluated(connection: Connection, cluster: str, done: Evaluation) -> None:
    upsert(connection, SLA_EVALUATIONS, [{"cluster": cluster, "at": done.at, "event_id": done.event_id}])


def folded(connection: Connection) -> int:
    """Returns the id of Dagster's latest event in the ledger."""
    return connection.execute(select(FOLD.c.event_id)).scalar() or 0


def judged(connection: Connection, cluster: str) -> dict[DeadlineKey, datetime]:
    """Deadline on a cluster -> the time before which every instance is judged."""
    found = connection.execute(select(SLA_PROGRESS).where(SLA_PROGRESS.c.cluster == cluster))
    return {(row.kind, row.entity, row.cluster, row.level): row.judged for row in found}


def set_judged(connection: Connection, moved: Mapping[DeadlineKey, datetime]) -> None:
    names = ("kind", "entity", "cluster", "level")
    rows = [{**dict(zip(names, key, strict=True)), "judged": moved[key]} for key in sorted(moved)]
    upsert(connection, SLA_PROGRESS, rows)


def forget_judged(connection: Connection, cluster: str) -> None:
    """Makes all deadlines on the cluster new, after the clock was set back."""
    connection.execute(delete(SLA_PROGRESS).where(SLA_PROGRESS.c.cluster == cluster))


@dataclass(frozen=True)
class JudgedSpan:
    key: DeadlineKey
    first: datetime
    last: datetime


def known_in(connection: Connection, spans: Sequence[JudgedSpan]) -> dict[DeadlineKey, dict[datetime, Known]]:
    """Returns the known times of instances in the spans; unrecorded instances are missing."""
    feeds = [one for one in spans if one.key[0] == "feed"]
    processes = [one for one in spans if one.key[0] == "process"]
    table, runs = FEED_INSTANCES.c, PROCESS_INSTANCES.c
    of_feeds = (table.instance, table.landed_at, table.looked_before, table.changes)
    of_runs = (runs.nominal, runs.first_started, runs.first_succeeded, runs.state)
    found: dict[DeadlineKey, dict[datetime, Known]] = {}
    for key, values in _within(connection, feeds, FEED_INSTANCES, "feed", of_feeds):
        found[key] = {instance: landed(*others) for instance, *others in values}
    for key, values in _within(connection, processes, PROCESS_INSTANCES, "process", of_runs):
        found[key] = {instance: ran(*others) for instance, *others in values}
    return found


def landed(landed_at: datetime, looked_before: datetime | None, changes: int) -> Known:
    """Returns the earliest possible landing: delays of collectors do not count against the SLA."""
    if looked_before is not None and not changes:  # nobody looked in between: it has the benefit of the doubt
        landed_at = min(landed_at, looked_before + MICROSECOND)
    return Known(landed_at, landed_at)


def ran(started: datetime | None, succeeded: datetime | None, state: str) -> Known:
    return Known(started, succeeded, state not in _NOT_EXPECTED)


def _within(
    connection: Connection,
    spans: Sequence[JudgedSpan],
    table: Table,
    name: str,
    columns: tuple[ColumnElement[Any], ...],
) -> Iterable[tuple[DeadlineKey, Iterable[Sequence[Any]]]]:
    """Yields for each span the values of its instances; the first column is the instance."""
    if not spans:
        return
    asked = unnested(
        entity=(TEXT, [span.key[1] for span in spans]),
        cluster=(TEXT, [span.key[2] for span in spans]),
        first=(INSTANT, [span.first for span in spans]),
        last=(INSTANT, [span.last for span in spans]),
        number=(Integer(), range(len(spans))),
    )
    own = and_(
        table.c[name] == asked.c.entity,
        table.c.cluster == asked.c.cluster,
        columns[0].between(asked.c.first, asked.c.last),
    )
    values = select(*(func.array_agg(one).label(f"value_{place}") for place, one in enumerate(columns)))
    found = values.where(own).lateral("found")
    for number, *arrays in connection.execute(select(asked.c.number, *found.c).join_from(asked, found, true())):
        if arrays[0]:
            yield spans[number].key, zip(*arrays, strict=True)


BreachKey: TypeAlias = tuple[str, str, str, str, datetime]
"""Kind, entity, cluster, level, instance."""

_IS_OPEN = text("sla_breaches.state = 'OPEN'")  # as the index says it
_CHUNK = 10_000
_KEY = ("kind", "entity", "cluster", "level", "instance")


class BreachState(str, Enum):
    OPEN = "OPEN"
    MET = "MET"
    """Met after the deadline."""
    WITHDRAWN = "WITHDRAWN"
    """No longer declared, or the instance is skipped or suspended."""


@dataclass(frozen=True)
class OpenBreach:
    key: BreachKey
    deadline: datetime
    known: Known

    @property
    def met_at(self) -> datetime | None:
        return self.known.met_at(SlaLevel(self.key[3]))


@dataclass(frozen=True)
class Cleared:
    key: BreachKey
    state: BreachState
    at: datetime


def record_breaches(connection: Connection, found: Sequence[Breach], now: datetime) -> int:
    """Records breaches, including those met late; returns the number of new ones."""
    count = 0
    for part in parts(found, _CHUNK):
        columns = [*zip(*(one.deadline.key for one in part), strict=True)]
        states = [(BreachState.OPEN if one.met_at is None else BreachState.MET).value for one in part]
        values: dict[str, Sequence[Any]] = {
            **dict(zip((*_KEY[:4], "state"), (*columns, states), strict=True)),
            "instance": [one.instance for one in part],
            "deadline": [one.at for one in part],
            "recorded_at": [now] * len(part),
            "cleared_at": [one.met_at for one in part],
        }
        rows = rows_of(SLA_BREACHES, values)
        statement = insert(SLA_BREACHES).from_select([*values], select(rows)).on_conflict_do_nothing()
        new = connection.execute(statement.returning(*(SLA_BREACHES.c[name] for name in _KEY[:-1]))).all()
        add_breaches(connection, Counter((row[0], row[1], row[2], row[3]) for row in new))
        count += len(new)
    return count


def changed_since(connection: Connection, cluster: str, event_id: int) -> list[OpenBreach]:
    """Returns open breaches whose instances changed since that event; others are not read."""
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
    table = SLA_BREACHES.c
    names = [table[name] for name in _KEY[:-1]]
    statement = select(*names, func.array_agg(table.instance)).where(table.cluster == cluster, _IS_OPEN)
    found = connection.execute(statement.group_by(*names))
    return {(row[0], row[1], row[2], row[3]): row[4] for row in found}


def clear_breaches(connection: Connection, cleared: Sequence[Cleared]) -> None:
    for part in parts(cleared, _CHUNK):
        columns: dict[str, Sequence[Any]] = {
            **dict(zip(_KEY, zip(*(one.key for one in part), strict=True), strict=True)),
            "state": [one.state.value for one in part],
            "cleared_at": [one.at for one in part],
        }
        gone = rows_of(SLA_BREACHES, columns)
        same = and_(*(SLA_BREACHES.c[name] == gone.c[name] for name in _KEY))
        values = {"state": gone.c.state, "cleared_at": gone.c.cleared_at}
        connection.execute(update(SLA_BREACHES).values(values).where(same, _IS_OPEN))
