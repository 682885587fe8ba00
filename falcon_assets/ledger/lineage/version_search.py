"""Versions of feed instances, found by what is known of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import eq, ge, gt, le, lt, ne
from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, Connection, and_, case, false, func, literal, or_

from falcon_assets.ledger.lineage.graph import every_version, version_of_row
from falcon_assets.ledger.tables import DATA_VERSIONS, KEPT_VERSIONS, VERSION_LIFECYCLE
from falcon_assets.planning.lineage.graph import Version

Value: TypeAlias = "str | int | bool | datetime"
_TABLE = DATA_VERSIONS.c
_KEY = ("cluster", "feed", "instance", "version")
_SET = and_(*(VERSION_LIFECYCLE.c[name] == _TABLE[name] for name in _KEY))
COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {">=": ge, "<=": le, "!=": ne, "=": eq, ">": gt, "<": lt}
"""How a value is compared; the longer signs first, as they are read."""
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
"""Of these a value may hold ``*`` for any text."""
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
    """What is to be so of a version.

    Attributes:
        field: One of :data:`TEXTS`, :data:`TIMES`, :data:`NUMBERS` or :data:`FLAGS`, ``status`` or ``lifecycle``.
        comparison: One of :data:`COMPARISONS`.
        values: With ``=`` any of them may fit; else there is one.
    """

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
    """The versions of which all conditions hold, those that history mentions last first.

    Args:
        connection: The ledger.
        conditions: The conditions.
        lifecycles: By lifecycle status, the feeds that declare another one than ``initial``.
        hidden: Feeds whose versions are left out.
        before: Only with smaller numbers; None: all.
        limit: So many at most.
    """
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
