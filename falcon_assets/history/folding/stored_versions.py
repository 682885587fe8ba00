"""Loads and stores the versions that facts are about, and the edges between them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, select, update

from falcon_assets.history.database import among, parts, rows_of, upsert
from falcon_assets.history.events.event_log import Fact
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable, FeedInstanceEvicted
from falcon_assets.history.folding.ledger_rows import FeedKey, ProcessKey
from falcon_assets.history.folding.version_rows import VersionKey, VersionRow, VersionRows, inputs_of, store_plans
from falcon_assets.history.tables import CONSUMED, DATA_VERSIONS, FEED_INSTANCES, VERSION_EDGES
from falcon_assets.planning.instance_record import FeedState
from falcon_assets.planning.version_columns import VersionStatus

_KEY = ("cluster", "feed", "instance", "version")
_ROW = [one.name for one in fields(VersionRow)]


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
        rows.known[row.cluster, row.feed, row.instance, row.version] = version_row_of(row)
    rows.last_id = connection.execute(select(func.max(table.id))).scalar() or 0
    return rows


def version_row_of(row: Any) -> VersionRow:
    values = {name: row._mapping[name] for name in _ROW}
    return VersionRow(**{**values, "status": VersionStatus(values["status"])})


def store_versions(connection: Connection, rows: VersionRows) -> None:
    versions = [{**dict(zip(_KEY, key, strict=True)), **vars(rows.known[key])} for key in rows.changed]
    edges = [{"output": key[0], "input": key[1], **vars(row)} for key, row in rows.edges.items()]
    upsert(connection, DATA_VERSIONS, [{**one, "status": one["status"].value} for one in versions])
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
