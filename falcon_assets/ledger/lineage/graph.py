"""Versions of feed instances, and what they came from and became, however far."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import fields
from datetime import datetime
from operator import itemgetter
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, Select, and_, literal, or_, select, true

from falcon_assets.ledger.database.upsert import rows_of
from falcon_assets.ledger.tables import DATA_VERSIONS, KEPT_VERSIONS, VERSION_EDGES
from falcon_assets.planning.lineage.graph import Edge, Graph, Version
from falcon_assets.planning.lineage.version_status import VersionStatus

_SAME = and_(*(KEPT_VERSIONS.c[name] == DATA_VERSIONS.c[name] for name in ("cluster", "feed", "instance", "version")))
_COLUMNS = (*DATA_VERSIONS.c, KEPT_VERSIONS.c.path.label("kept_at"))
_TABLE, _EDGE = DATA_VERSIONS.c, VERSION_EDGES.c
_FIELDS = [one.name for one in fields(Version)]
_NAMES = [{"id": "number"}.get(one.name, one.name) for one in _COLUMNS]
_IN_ORDER = itemgetter(*map(_NAMES.index, _FIELDS))
"""What a version is made of, in its order: by place, as a hundred thousand are made at once."""
_STATUS, _ENVIRONMENT = map(_FIELDS.index, ("status", "environment"))
_LISTS = [_FIELDS.index(name) for name in ("places", "warnings", "writes")]


def versions_of_instance(connection: Connection, feed: str, instance: datetime) -> list[Version]:
    """The versions that the instance had, on all clusters; what came last is last."""
    own = (_TABLE.feed == feed, _TABLE.instance == instance)
    every = every_version().where(*own)
    return [version_of_row(row) for row in connection.execute(every.order_by(_TABLE.event_id, _TABLE.id))]


def versions_made_by(
    connection: Connection, process: str, nominal: datetime, cluster: str | None = None
) -> list[Version]:
    """The versions that an instance of a process made, of all its outputs, there or anywhere; the last one is last."""
    own = [_TABLE.process == process, _TABLE.nominal == nominal]
    own += [] if cluster is None else [_TABLE.cluster == cluster]
    every = every_version().where(*own)
    return [version_of_row(row) for row in connection.execute(every.order_by(_TABLE.event_id, _TABLE.id))]


def every_version() -> Select[Any]:
    """Asks for all versions, as :func:`version_of_row` takes them."""
    return select(*_COLUMNS).outerjoin_from(DATA_VERSIONS, KEPT_VERSIONS, _SAME)


def same_snapshot(connection: Connection, version: Version) -> set[int]:
    """The rows of a version of a snapshot feed, by their numbers: one for each instance that it was there for."""
    same = (_TABLE.cluster == version.cluster, _TABLE.feed == version.feed, _TABLE.version == version.version)
    return set(connection.execute(select(_TABLE.id).where(*same)).scalars())


def reached(connection: Connection, starts: Collection[int], *, up: bool, depth: int | None = None) -> set[int]:
    """The versions that some were made from, else those that were made from them, with themselves.

    Args:
        connection: The ledger.
        starts: Their numbers.
        up: Whether to go to the inputs.
        depth: Over how many edges at most; None: all.
    """
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
    """The edges of one version after the other, by the index: PostgreSQL reads the whole table where it guesses wrong.

    Which it does for a table that grew since it was analyzed. The offset keeps it from turning this into a join.
    """
    return edges.offset(0).lateral("following")


def versions_of_numbers(connection: Connection, numbers: Collection[int], *only: ColumnElement[bool]) -> list[Version]:
    """These versions, in any order; ``only``: those of ``data_versions`` of which that is true."""
    given = rows_of(DATA_VERSIONS, {"id": list(numbers)})
    asked = select(*_COLUMNS).join_from(given, DATA_VERSIONS, _TABLE.id == given.c.id)
    return [version_of_row(row) for row in connection.execute(asked.outerjoin(KEPT_VERSIONS, _SAME).where(*only))]


def existing_versions(connection: Connection) -> list[Version]:
    """Those whose data is there, as the present version or a kept one; in any order."""
    there = or_(_TABLE.status == VersionStatus.AVAILABLE.value, KEPT_VERSIONS.c.path.is_not(None))
    return [version_of_row(row) for row in connection.execute(every_version().where(there))]


def graph_of(connection: Connection, numbers: Collection[int]) -> Graph:
    """These versions, and all edges between them."""
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


def version_of_row(row: Any) -> Version:
    """A row of :func:`every_version`."""
    values = list(_IN_ORDER(row))
    values[_STATUS] = VersionStatus(values[_STATUS])
    if values[_ENVIRONMENT]:
        values[_ENVIRONMENT] = json.loads(values[_ENVIRONMENT])
    for number in _LISTS:
        values[number] = tuple(json.loads(values[number])) if values[number] else ()
    return Version(*values)
