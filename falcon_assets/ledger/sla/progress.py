"""How far SLAs are evaluated, and what instances came to; each answer is a statement or two."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Connection,
    DateTime,
    Table,
    Text,
    and_,
    delete,
    func,
    literal,
    select,
    true,
)

from falcon_assets.ledger.database.upsert import upsert
from falcon_assets.ledger.tables import FEED_INSTANCES, FOLD, PROCESS_INSTANCES, SLA_EVALUATIONS, SLA_PROGRESS
from falcon_assets.model.wall_clock import MICROSECOND
from falcon_assets.planning.instances.instance_record import InstanceState
from falcon_assets.planning.sla.breaches import Known

DeadlineKey: TypeAlias = tuple[str, str, str, str]
"""Kind, entity, cluster, level."""

_NOT_EXPECTED = (InstanceState.SKIPPED.value, InstanceState.SUSPENDED.value)


@dataclass(frozen=True)
class Evaluation:
    """When the SLAs on a cluster were evaluated last, on the falcon clock, and how far the ledger was folded then."""

    at: datetime
    event_id: int


def last_evaluation(connection: Connection, cluster: str) -> Evaluation | None:
    """When the SLAs on a cluster were evaluated last; None: never."""
    found = connection.execute(select(SLA_EVALUATIONS).where(SLA_EVALUATIONS.c.cluster == cluster)).first()
    return Evaluation(found.at, found.event_id) if found else None


def set_evaluated(connection: Connection, cluster: str, done: Evaluation) -> None:
    """Remembers an evaluation."""
    upsert(connection, SLA_EVALUATIONS, [{"cluster": cluster, "at": done.at, "event_id": done.event_id}])


def folded(connection: Connection) -> int:
    """Dagster's latest event that the ledger knows."""
    return connection.execute(select(FOLD.c.event_id)).scalar() or 0


def judged(connection: Connection, cluster: str) -> dict[DeadlineKey, datetime]:
    """Deadline on a cluster -> before which time every instance is judged."""
    found = connection.execute(select(SLA_PROGRESS).where(SLA_PROGRESS.c.cluster == cluster))
    return {(row.kind, row.entity, row.cluster, row.level): row.judged for row in found}


def set_judged(connection: Connection, moved: Mapping[DeadlineKey, datetime]) -> None:
    """Remembers it."""
    names = ("kind", "entity", "cluster", "level")
    rows = [{**dict(zip(names, key, strict=True)), "judged": moved[key]} for key in sorted(moved)]
    upsert(connection, SLA_PROGRESS, rows)


def forget_judged(connection: Connection, cluster: str) -> None:
    """All deadlines on the cluster are new: the clock was set back."""
    connection.execute(delete(SLA_PROGRESS).where(SLA_PROGRESS.c.cluster == cluster))


@dataclass(frozen=True)
class JudgedSpan:
    """Instances that a deadline is judged for; both ends are included."""

    key: DeadlineKey
    first: datetime
    last: datetime


def known_in(connection: Connection, spans: Sequence[JudgedSpan]) -> dict[DeadlineKey, dict[datetime, Known]]:
    """What the instances in the spans came to; nothing about those of which nothing has come."""
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
    """What is known of a feed instance that landed: when it may have come at the earliest."""
    if looked_before is not None and not changes:  # nobody looked in between: it has the benefit of the doubt
        landed_at = min(landed_at, looked_before + MICROSECOND)
    return Known(landed_at, landed_at)


def ran(started: datetime | None, succeeded: datetime | None, state: str) -> Known:
    """What is known of a process instance."""
    return Known(started, succeeded, state not in _NOT_EXPECTED)


def _within(
    connection: Connection,
    spans: Sequence[JudgedSpan],
    table: Table,
    name: str,
    columns: tuple[ColumnElement[Any], ...],
) -> Iterable[tuple[DeadlineKey, Iterable[Sequence[Any]]]]:
    """Of each span the values of these columns of its instances; the first column is the instance."""
    if not spans:
        return
    numbers = {number: span.key for number, span in enumerate(spans)}
    instants = ARRAY(DateTime(timezone=True))
    asked = func.unnest(
        literal([span.key[1] for span in spans], ARRAY(Text)),
        literal([span.key[2] for span in spans], ARRAY(Text)),
        literal([span.first for span in spans], instants),
        literal([span.last for span in spans], instants),
    ).table_valued("entity", "cluster", "first", "last", with_ordinality="number")
    asked = asked.render_derived(name="asked")
    own = and_(
        table.c[name] == asked.c.entity,
        table.c.cluster == asked.c.cluster,
        columns[0].between(asked.c.first, asked.c.last),
    )
    values = select(*(func.array_agg(one).label(f"value_{place}") for place, one in enumerate(columns)))
    found = values.where(own).lateral("found")
    for number, *arrays in connection.execute(select(asked.c.number, *found.c).join_from(asked, found, true())):
        if arrays[0]:
            yield numbers[number - 1], zip(*arrays, strict=True)
