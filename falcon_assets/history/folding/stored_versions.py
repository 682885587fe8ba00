"""Loads and stores the versions that facts are about, and the edges between them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, select, update

from falcon_assets.history.database import among, parts, rows_of, upsert
from falcon_assets.history.events.data_version import Version
from falcon_assets.history.events.event_log import Fact
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable, FeedInstanceEvicted
from falcon_assets.history.folding.ledger_rows import FeedKey, ProcessKey
from falcon_assets.history.folding.version_rows import VersionKey, VersionRows, inputs_of, store_plans
from falcon_assets.history.tables import CONSUMED, DATA_VERSIONS, FEED_INSTANCES, VERSION_EDGES
from falcon_assets.planning.instance_record import FeedState
from falcon_assets.planning.version_columns import VersionStatus

_KEY = ("cluster", "feed", "instance", "version")
_NAMES = [one.name for one in fields(Version)]
_STATUS, _ENVIRONMENT = map(_NAMES.index, ("status", "environment"))
_LISTS = [_NAMES.index(name) for name in ("warnings", "places", "writes")]


def load_versions(connection: Connection, facts: Iterable[Fact], present: Mapping[tuple[Any, ...], str]) -> VersionRows:
    """Returns the stored versions that the facts are about; ``present``: the available ones.

    The transaction must hold the ledger's lock: new versions are numbered after the last one.
    """
    keys: set[VersionKey] = set()
    for one in facts:
        if not isinstance(one, FeedInstanceAvailable | FeedInstanceEvicted):
            continue
        place = (one.cluster, one.feed, one.instance)
        if version := present.get(place):
            keys.add((*place, version))
        if isinstance(one, FeedInstanceAvailable):
            keys.add((*place, one.version))
            keys.update(inputs_of(one))
    rows = VersionRows()
    if not keys:
        return rows
    table = DATA_VERSIONS.c
    asked = rows_of(DATA_VERSIONS, dict(zip(_KEY, zip(*keys, strict=True), strict=True)))
    own = and_(*(table[name] == asked.c[name] for name in _KEY))
    for row in connection.execute(select(DATA_VERSIONS).join_from(asked, DATA_VERSIONS, own)):
        known = version_of_row(row)
        rows.known[known.key] = known
    rows.last_id = connection.execute(select(func.max(table.id))).scalar() or 0
    return rows


def version_of_row(row: Sequence[Any]) -> Version:
    """Takes the columns in their order, and where a version that is kept lies; up to a hundred thousand at once."""
    values = [*row]
    values[_STATUS] = VersionStatus(values[_STATUS])
    if values[_ENVIRONMENT]:
        values[_ENVIRONMENT] = json.loads(values[_ENVIRONMENT])
    for number in _LISTS:
        values[number] = tuple(json.loads(values[number])) if values[number] else ()
    return Version(*values)


def row_of_version(version: Version) -> dict[str, Any]:
    def as_json(value: Any) -> str | None:
        return json.dumps(value, sort_keys=True) if value else None

    texts = {_NAMES[number]: as_json(getattr(version, _NAMES[number])) for number in (_ENVIRONMENT, *_LISTS)}
    return {**vars(version), **texts, "id": version.number, "status": version.status.value}


def store_versions(connection: Connection, rows: VersionRows) -> None:
    edges = [{"output": key[0], "input": key[1], **vars(row)} for key, row in rows.edges.items()]
    upsert(connection, DATA_VERSIONS, [row_of_version(rows.known[key]) for key in rows.changed])
    upsert(connection, VERSION_EDGES, edges)
    store_plans(connection, rows.plans)


def mark_stale(connection: Connection, feeds: Collection[FeedKey], readers: Collection[ProcessKey]) -> None:
    """Updates ``consumed.stale`` for these feed instances and process instances.

    Stale: the available version differs from the version read (including none), was seen after the start of reading,
    was not evicted since, and no record says that it came too late. If it was seen before the start, the version read
    is the newer one, which the collector has yet to see.
    """
    read = (CONSUMED.c.input_cluster, CONSUMED.c.feed, CONSUMED.c.instance)
    reader = (CONSUMED.c.process, CONSUMED.c.cluster, CONSUMED.c.nominal)
    for part in parts(feeds):
        _mark(connection, among(read, part))
    for another in parts(readers):
        _mark(connection, among(reader, another))


def _mark(connection: Connection, concerned: ColumnElement[bool]) -> None:
    read, there = CONSUMED.c, FEED_INSTANCES.c
    stale = and_(
        there.state == FeedState.AVAILABLE.value,
        there.version.is_distinct_from(read.version),
        there.version.is_distinct_from(read.too_late),
        there.version_event > read.read_event,
    )
    same = and_(there.cluster == read.input_cluster, there.feed == read.feed, there.instance == read.instance)
    connection.execute(update(CONSUMED).values(stale=stale).where(same, concerned, read.stale.is_distinct_from(stale)))
