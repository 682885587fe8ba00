"""Loads and stores the versions that facts are about, and the edges between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from sqlalchemy import Connection, and_, func, select

from falcon_assets.events.event_log import Fact
from falcon_assets.events.feed_instances import FeedInstanceAvailable, FeedInstanceEvicted
from falcon_assets.ledger.database.upsert import rows_of, upsert
from falcon_assets.ledger.folding.version_columns import store_plans
from falcon_assets.ledger.folding.version_rows import VersionKey, VersionRow, VersionRows, inputs_of
from falcon_assets.ledger.tables import DATA_VERSIONS, VERSION_EDGES
from falcon_assets.planning.lineage.version_status import VersionStatus

_KEY = ("cluster", "feed", "instance", "version")
_ROW = [one.name for one in fields(VersionRow)]


def load_versions(connection: Connection, facts: Iterable[Fact], present: Mapping[tuple[Any, ...], str]) -> VersionRows:
    """The versions that the facts are about, as they are stored.

    Args:
        connection: Whose transaction has the ledger's lock: the numbers of new versions follow the last one.
        facts: What happened.
        present: The versions that are there now, by cluster, feed and instance.
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
    """A row of ``data_versions``, without its key."""
    values = {name: row._mapping[name] for name in _ROW}
    return VersionRow(**{**values, "status": VersionStatus(values["status"])})


def store_versions(connection: Connection, rows: VersionRows) -> None:
    """Stores what has changed."""
    versions = [{**dict(zip(_KEY, key, strict=True)), **vars(rows.known[key])} for key in rows.changed]
    edges = [{"output": key[0], "input": key[1], **vars(row)} for key, row in rows.edges.items()]
    upsert(connection, DATA_VERSIONS, [{**one, "status": one["status"].value} for one in versions])
    upsert(connection, VERSION_EDGES, edges)
    store_plans(connection, rows.plans)
