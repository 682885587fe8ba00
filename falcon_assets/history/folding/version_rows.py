"""Versions, their edges and their columns: what facts make of them, and how they are stored; equal columns once."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from hashlib import sha256
from typing import Any, TypeAlias

from sqlalchemy import Connection, and_, func, select

from falcon_assets.history.database import rows_of, upsert
from falcon_assets.history.events.data_version import PublishedVersion, Version
from falcon_assets.history.events.event_log import Fact
from falcon_assets.history.events.feed_instances import FeedArchiveExpired, FeedInstanceAvailable, FeedInstanceEvicted
from falcon_assets.history.tables import DATA_VERSIONS, VERSION_COLUMNS, VERSION_EDGES
from falcon_assets.planning.version_columns import OutputColumns, VersionStatus

Plans: TypeAlias = dict[str, dict[str, Any]]


def plan_of(columns: OutputColumns | None, plans: Plans) -> str | None:
    """Adds the columns to ``plans`` and returns their hash; None: not recorded."""
    if columns is None:
        return None
    said = columns.as_data()
    plan = sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:32]
    plans[plan] = said
    return plan


def store_plans(connection: Connection, plans: Plans) -> None:
    upsert(connection, VERSION_COLUMNS, [{"plan": plan, "rows_opaque": None, **said} for plan, said in plans.items()])


def columns_of_plans(connection: Connection, plans: Collection[str]) -> dict[str, OutputColumns]:
    given = rows_of(VERSION_COLUMNS, {"plan": sorted(plans)})
    asked = select(VERSION_COLUMNS).join(given, VERSION_COLUMNS.c.plan == given.c.plan)
    return {row.plan: OutputColumns.of_data(dict(row._mapping)) for row in connection.execute(asked)}


VersionKey: TypeAlias = tuple[str, str, datetime, str]
"""Cluster, feed, instance, version."""
Edge: TypeAlias = tuple[int, int]
"""The numbers of a version and of one it was made from."""
_PUBLISHED = [one.name for one in fields(PublishedVersion)]


@dataclass(frozen=True)
class EdgeRow:
    process: str
    run_id: str | None
    definition: int | None
    declared: bool = True


@dataclass
class VersionRows:
    """Versions are numbered in the order of history, so that every fold gives the same numbers."""

    known: dict[VersionKey, Version] = field(default_factory=dict)
    changed: set[VersionKey] = field(default_factory=set)
    edges: dict[Edge, EdgeRow] = field(default_factory=dict)
    plans: Plans = field(default_factory=dict)
    last_id: int = 0

    def available(
        self, fact: FeedInstanceAvailable, event_id: int, run_id: str | None, attempt: int | None, before: str | None
    ) -> None:
        """Records that a version is available; ``before`` is the previous one.

        ``run_id`` None: it landed from outside. ``attempt`` of the process instance in that run; None: unknown.
        """
        if before and before != fact.version:
            self.ended((fact.cluster, fact.feed, fact.instance, before), VersionStatus.REPLACED, fact.seen_at, run_id)
        key = (fact.cluster, fact.feed, fact.instance, fact.version)
        row = self._row(key, event_id)
        is_there = row.status is VersionStatus.AVAILABLE
        there: dict[str, Any] = {
            "status": VersionStatus.AVAILABLE,
            "event_id": event_id,
            "seen_at": row.seen_at if is_there else fact.seen_at,
            "ended_at": None,
            "ended_by": None,
            "archived_to": None,
            "path": fact.path,
            "bytes": fact.bytes,
            "records": fact.records if fact.records is not None else row.records,  # nobody counts what lands
            "files": fact.files,
            "restored_by": fact.restored_by or (row.restored_by if is_there else None),
        }
        if fact.process is not None:  # else somebody saw again what a run had made
            made = {"run_id": run_id, "made_at": fact.seen_at, "attempt": attempt, "late": bool(fact.late)}
            published = {name: getattr(fact, name) for name in _PUBLISHED}
            there = {**published, **made, "plan": plan_of(fact.columns, self.plans), **there}
            for read, is_declared in inputs_of(fact).items():
                if read != key:
                    edge = EdgeRow(fact.process, run_id, fact.definition, is_declared)
                    self.edges[row.number, self._row(read, event_id).number] = edge
        self._put(replace(row, **there))

    def evicted(self, fact: FeedInstanceEvicted, run_id: str | None, version: str) -> None:
        key = (fact.cluster, fact.feed, fact.instance, version)
        self.ended(key, VersionStatus.EVICTED, fact.at, run_id, fact.archived_to)

    def expired(self, fact: FeedArchiveExpired) -> bool:
        """Returns whether the version was in that archive until now."""
        row = self.known.get((fact.cluster, fact.feed, fact.instance, fact.version or ""))
        if row is None or row.archived_to != fact.archive_expired:
            return False
        self._put(replace(row, archived_to=None))
        return True

    def ended(
        self, key: VersionKey, status: VersionStatus, at: datetime, run_id: str | None, archived_to: str | None = None
    ) -> None:
        row = self.known.get(key)
        if row is not None and row.status is VersionStatus.AVAILABLE:
            self._put(replace(row, status=status, ended_at=at, ended_by=run_id, archived_to=archived_to))

    def _row(self, key: VersionKey, event_id: int) -> Version:
        if key not in self.known:
            self.last_id += 1
            self._put(Version(*key, number=self.last_id, event_id=event_id))
        return self.known[key]

    def _put(self, row: Version) -> None:
        self.known[row.key] = row
        self.changed.add(row.key)


def inputs_of(fact: FeedInstanceAvailable) -> dict[VersionKey, bool]:
    read = dict.fromkeys(fact.undeclared, False) | {one: True for of in (fact.inputs or {}).values() for one in of}
    found = {
        (one.cluster or fact.cluster, one.feed, one.instance, one.version): is_declared
        for one, is_declared in read.items()
        if one.version
    }
    copied = (fact.source_versions or {}).items()  # from several clusters
    return found | {(cluster, fact.feed, fact.instance, version): True for cluster, version in copied if version}


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
        if not isinstance(one, FeedInstanceAvailable | FeedInstanceEvicted | FeedArchiveExpired):
            continue
        place = (one.cluster, one.feed, one.instance)
        if isinstance(one, FeedArchiveExpired):
            keys.update([(*place, one.version)] if one.version else ())
            continue
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
