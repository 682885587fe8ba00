"""Queries for versions of feed instances, for the graph around them, and for conditions."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import eq, ge, gt, le, lt, ne
from typing import Any, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Select,
    and_,
    case,
    false,
    func,
    literal,
    or_,
    select,
    true,
)

from falcon_assets.features.lineage.graph import Edge, Graph
from falcon_assets.features.lineage.places import Touch
from falcon_assets.history.database import rows_of
from falcon_assets.history.events.data_version import Version
from falcon_assets.history.folding.version_rows import version_of_row
from falcon_assets.history.tables import DATA_VERSIONS, KEPT_VERSIONS, VERSION_EDGES, VERSION_LIFECYCLE
from falcon_assets.planning.version_columns import VersionStatus

_SAME = and_(*(KEPT_VERSIONS.c[name] == DATA_VERSIONS.c[name] for name in ("cluster", "feed", "instance", "version")))
_COLUMNS = (*DATA_VERSIONS.c, KEPT_VERSIONS.c.path.label("kept_at"))
_TABLE, _EDGE = DATA_VERSIONS.c, VERSION_EDGES.c


def versions_of_instance(connection: Connection, feed: str, instance: datetime) -> list[Version]:
    """Returns the versions of an instance on all clusters, in the order of events."""
    own = (_TABLE.feed == feed, _TABLE.instance == instance)
    every = every_version().where(*own)
    return [version_of_row(row) for row in connection.execute(every.order_by(_TABLE.event_id, _TABLE.id))]


def versions_made_by(
    connection: Connection, process: str, nominal: datetime, cluster: str | None = None
) -> list[Version]:
    """Returns the versions that an instance of a process made, existing or not, in the order of events."""
    own = [_TABLE.process == process, _TABLE.nominal == nominal]
    own += [] if cluster is None else [_TABLE.cluster == cluster]
    every = every_version().where(*own)
    return [version_of_row(row) for row in connection.execute(every.order_by(_TABLE.event_id, _TABLE.id))]


def every_version() -> Select[Any]:
    return select(*_COLUMNS).outerjoin_from(DATA_VERSIONS, KEPT_VERSIONS, _SAME)


def same_snapshot(connection: Connection, version: Version) -> set[int]:
    """Returns the rows of a version of a snapshot feed: one for each instance for which it was present."""
    same = (_TABLE.cluster == version.cluster, _TABLE.feed == version.feed, _TABLE.version == version.version)
    return set(connection.execute(select(_TABLE.id).where(*same)).scalars())


def reached(connection: Connection, starts: Collection[int], *, up: bool, depth: int | None = None) -> set[int]:
    """Returns all versions that ``starts`` were made from (``up``) or that were made from them, with themselves."""
    here, there = (_EDGE.output, _EDGE.input) if up else (_EDGE.input, _EDGE.output)
    given = rows_of(DATA_VERSIONS, {"id": list(starts)})
    if depth is None:
        every = select(given.c.id).cte("reached", recursive=True)
        following = each_following(select(there.label("id")).where(here == every.c.id))
        every = every.union(
            select(following.c.id).join_from(every, following, true())
        )  # each once, by however many ways
        return set(connection.execute(select(every.c.id)).scalars())
    near = select(given.c.id, literal(0).label("depth")).cte("reached", recursive=True)
    following = each_following(select(there.label("id")).where(here == near.c.id))
    step = select(following.c.id, near.c.depth + 1).join_from(near, following, true()).where(near.c.depth < depth)
    return set(connection.execute(select(near.union(step).c.id)).scalars())


def each_following(edges: Select[Any]) -> FromClause:
    """Forces index lookups: PostgreSQL reads a table whole that grew since ANALYZE; the offset prevents a join."""
    return edges.offset(0).lateral("following")


def versions_of_numbers(connection: Connection, numbers: Collection[int], *only: ColumnElement[bool]) -> list[Version]:
    """Returns versions in any order; ``only`` are conditions on ``data_versions``."""
    given = rows_of(DATA_VERSIONS, {"id": list(numbers)})
    asked = select(*_COLUMNS).join_from(given, DATA_VERSIONS, _TABLE.id == given.c.id)
    return [version_of_row(row) for row in connection.execute(asked.outerjoin(KEPT_VERSIONS, _SAME).where(*only))]


def existing_versions(connection: Connection) -> list[Version]:
    there = or_(_TABLE.status == VersionStatus.AVAILABLE.value, KEPT_VERSIONS.c.path.is_not(None))
    return [version_of_row(row) for row in connection.execute(every_version().where(there))]


def graph_of(connection: Connection, numbers: Collection[int]) -> Graph:
    versions = {one.number: one for one in versions_of_numbers(connection, numbers)}
    outputs = rows_of(VERSION_EDGES, {"output": list(versions)})
    inputs = rows_of(VERSION_EDGES, {"input": list(versions)}).alias("read")
    made = each_following(select(VERSION_EDGES).where(_EDGE.output == outputs.c.output))
    joined = select(made).join_from(outputs, made, true()).join(inputs, made.c.input == inputs.c.input)
    edges = [
        Edge(row.output, row.input, row.process, row.run_id, row.definition, row.declared)
        for row in connection.execute(joined)
    ]
    return Graph(versions, edges)


def writers_of(connection: Connection, numbers: Collection[int]) -> list[Touch]:
    given = rows_of(DATA_VERSIONS, {"id": list(numbers)})
    return _touches(connection, _TOUCHES.join(given, _TABLE.id == given.c.id).where(_TABLE.writes.is_not(None)))


def readers_of_places(connection: Connection) -> list[Touch]:
    return _touches(connection, _TOUCHES.where(_TABLE.places.is_not(None)))


_TOUCHES = select(
    _TABLE.id, _TABLE.process, _TABLE.nominal, _TABLE.run_id, _TABLE.made_at, _TABLE.places, _TABLE.writes
).where(_TABLE.made_at.is_not(None))


def _touches(connection: Connection, asked: Select[Any]) -> list[Touch]:
    return [
        Touch(number, (process, nominal, run), at, *(tuple(json.loads(one)) if one else () for one in places))
        for number, process, nominal, run, at, *places in connection.execute(asked)
    ]


Value: TypeAlias = "str | int | bool | datetime"
_KEY = ("cluster", "feed", "instance", "version")
_SET = and_(*(VERSION_LIFECYCLE.c[name] == _TABLE[name] for name in _KEY))
COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {">=": ge, "<=": le, "!=": ne, "=": eq, ">": gt, "<": lt}
"""Longer signs precede their prefixes, as they are matched in this order."""
TEXTS: Mapping[str, ColumnElement[Any]] = {
    "feed": _TABLE.feed,
    "cluster": _TABLE.cluster,
    "version": _TABLE.version,
    "process": _TABLE.process,
    "run": _TABLE.run_id,
    "user": _TABLE.made_by,
    "path": _TABLE.path,
    "archived_to": _TABLE.archived_to,
    "ended_by": _TABLE.ended_by,
    "restored_by": _TABLE.restored_by,
    "environment": _TABLE.environment,
}
"""Fields whose values may hold ``*`` for any text."""
TIMES: Mapping[str, ColumnElement[Any]] = {
    name: _TABLE[name] for name in ("instance", "nominal", "seen_at", "made_at", "ended_at")
}
NUMBERS: Mapping[str, ColumnElement[Any]] = {
    name: _TABLE[name] for name in ("bytes", "records", "files", "attempt", "definition")
}
FLAGS: Mapping[str, ColumnElement[Any]] = {
    "exists": or_(_TABLE.status == "AVAILABLE", KEPT_VERSIONS.c.path.is_not(None)),
    "late": _TABLE.late,
}


@dataclass(frozen=True)
class Condition:
    """A condition on a version; several values only with ``=``, where any of them may fit."""

    field: str
    comparison: str
    values: tuple[Value, ...]


def search_versions(
    connection: Connection,
    conditions: Sequence[Condition],
    lifecycles: Mapping[str, Collection[str]],
    hidden: Collection[str],
    before: int | None,
    limit: int,
) -> list[Version]:
    """Returns matches, the latest in history first; ``lifecycles`` are feeds by status, without ``initial``."""
    declared: ColumnElement[str] = literal("initial")
    for status, feeds in lifecycles.items():
        declared = case((_TABLE.feed.in_(list(feeds)), status), else_=declared)
    special = {
        "status": case((KEPT_VERSIONS.c.path.is_not(None), "KEPT"), else_=_TABLE.status),
        "lifecycle": func.coalesce(VERSION_LIFECYCLE.c.status, declared),
    }
    columns = {**TEXTS, **TIMES, **NUMBERS, **FLAGS, **special}
    wanted = [or_(false(), *(_holds(one, columns[one.field], value) for value in one.values)) for one in conditions]
    if hidden:
        wanted.append(_TABLE.feed.not_in(list(hidden)))
    if before is not None:
        wanted.append(_TABLE.id < before)
    asked = every_version().outerjoin(VERSION_LIFECYCLE, _SET).where(*wanted)
    rows = connection.execute(asked.order_by(_TABLE.id.desc()).limit(limit))
    return [version_of_row(row) for row in rows]


def _holds(condition: Condition, column: ColumnElement[Any], value: Value) -> ColumnElement[bool]:
    if condition.field in TEXTS and isinstance(value, str) and "*" in value and condition.comparison in ("=", "!="):
        pattern = "".join("%" if char == "*" else f"\\{char}" if char in "\\%_" else char for char in value)
        found = column.like(pattern, escape="\\")
    else:
        found = COMPARISONS["=" if condition.comparison == "!=" else condition.comparison](column, value)
    if condition.comparison == "!=":
        return or_(column.is_(None), ~found)
    return found
