"""Paged lists of breaches, filtered by the database: years of cleared ones may be stored."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Connection,
    TextClause,
    and_,
    case,
    func,
    or_,
    select,
    text,
    update,
)

from falcon_assets.features.sla.store import BreachState
from falcon_assets.history.database import rows_of
from falcon_assets.history.tables import SLA_BREACHES, SLA_EVALUATIONS
from falcon_assets.model.instant import Instant
from falcon_assets.model.sla import SlaLevel
from falcon_assets.operations.operation import Result

InstanceKey: TypeAlias = tuple[str, str, str, datetime]
"""Kind, entity, cluster, instance."""

_TABLE = SLA_BREACHES.c
_INSTANCE = ("kind", "entity", "cluster", "instance")
_MISSED = [one.value for one in SlaLevel if one.is_missed]
_COLUMNS: Mapping[str, ColumnElement[Any]] = {
    **{name: _TABLE[name] for name in ("kind", "entity", "cluster", "instance", "level", "deadline", "state")},
    "severity": case((_TABLE.level.in_(_MISSED), "ERROR"), else_="WARN"),
}


@dataclass(frozen=True)
class BreachRow(Result):
    kind: str
    entity: str
    cluster: str
    instance: Instant
    level: SlaLevel
    deadline: datetime
    state: BreachState
    cleared_at: datetime | None
    keys = (
        *("kind", "entity", "cluster", "instance", "level", "severity=level.severity"),
        *("deadline", "state", "cleared=cleared_at"),
    )


def listed_breaches(
    connection: Connection,
    entities: Mapping[str, Collection[str]],
    clusters: Collection[str],
    wanted: Mapping[str, Collection[str]],
    now: datetime,
    sort: str,
    offset: int,
    limit: int | None,
) -> tuple[list[BreachRow], int]:
    """Returns a part of the breaches up to ``now``, as the clock may be set back, and the number in all parts.

    ``entities`` are kind -> names, no others are listed; ``wanted`` is field -> lower-case texts, one of which must
    fit. Without ``state`` in it, open ones are listed. '-' before ``sort`` is descending.
    """
    names = [and_(_TABLE.kind == kind, _TABLE.entity.in_(own)) for kind, own in entities.items()]
    conditions: list[ColumnElement[bool] | TextClause] = [or_(*names), _TABLE.cluster.in_(clusters)]
    conditions += [_TABLE.deadline <= now]
    conditions += [func.lower(_COLUMNS[field]).in_(values) for field, values in wanted.items()]
    if "state" not in wanted:
        conditions.append(text("state = 'OPEN'"))  # as the index says it
    order = _COLUMNS[sort.removeprefix("-")]
    ties = [_TABLE[name].collate("C") for name in ("kind", "entity", "cluster", "level")]
    statement = (
        select(SLA_BREACHES)
        .where(*conditions)
        .order_by(order.desc() if sort.startswith("-") else order, _TABLE.instance, *ties)
        .offset(offset)
        .limit(limit)
    )
    total = connection.execute(select(func.count()).select_from(SLA_BREACHES).where(*conditions)).scalar_one()
    return [_row(row) for row in connection.execute(statement)], total


def breaches_of(connection: Connection, instances: Sequence[InstanceKey]) -> dict[InstanceKey, tuple[BreachRow, ...]]:
    if not instances:
        return {}
    columns = dict(zip(_INSTANCE, zip(*instances, strict=True), strict=True))
    asked = rows_of(SLA_BREACHES, columns)
    own = and_(*(_TABLE[name] == asked.c[name] for name in _INSTANCE))
    statement = select(SLA_BREACHES).join_from(asked, SLA_BREACHES, own).order_by(_TABLE.deadline, _TABLE.level)
    found: dict[InstanceKey, tuple[BreachRow, ...]] = {}
    for row in map(_row, connection.execute(statement)):
        key = (row.kind, row.entity, row.cluster, row.instance)
        found[key] = (*found.get(key, ()), row)
    return found


def untold_instances(connection: Connection, cluster: str, limit: int) -> list[InstanceKey]:
    """Returns instances with breaches whose present state was not reported to Dagster, the newest first."""
    columns = [_TABLE[name] for name in _INSTANCE]
    newest = func.max(_TABLE.deadline)
    statement = select(*columns).where(_TABLE.cluster == cluster, text("told IS DISTINCT FROM state"))
    found = connection.execute(statement.group_by(*columns).order_by(newest.desc(), *columns).limit(limit))
    return [(row.kind, row.entity, row.cluster, row.instance) for row in found]


def set_told(connection: Connection, told: Sequence[BreachRow]) -> None:
    for one in told:
        own = (_TABLE.kind == one.kind, _TABLE.entity == one.entity, _TABLE.cluster == one.cluster)
        exactly = (_TABLE.instance == one.instance, _TABLE.level == one.level.value)
        connection.execute(update(SLA_BREACHES).values(told=one.state.value).where(*own, *exactly))


def _row(row: Any) -> BreachRow:
    return BreachRow(
        *(row.kind, row.entity, row.cluster, row.instance, SlaLevel(row.level), row.deadline),
        *(BreachState(row.state), row.cleared_at),
    )


def last_evaluations(connection: Connection, clusters: Collection[str]) -> dict[str, datetime]:
    table = SLA_EVALUATIONS.c
    return {
        row.cluster: row.at for row in connection.execute(select(SLA_EVALUATIONS).where(table.cluster.in_(clusters)))
    }
