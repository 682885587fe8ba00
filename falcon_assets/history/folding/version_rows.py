"""Versions, their edges and their columns; equal columns are stored once."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from typing import Any, TypeAlias

from sqlalchemy import Connection, select

from falcon_assets.history.database import rows_of, upsert
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable, FeedInstanceEvicted
from falcon_assets.history.tables import VERSION_COLUMNS
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


@dataclass(frozen=True)
class VersionRow:
    id: int
    event_id: int
    status: VersionStatus = VersionStatus.READ
    seen_at: datetime | None = None
    ended_at: datetime | None = None
    ended_by: str | None = None
    archived_to: str | None = None
    path: str | None = None
    bytes: int | None = None
    records: int | None = None
    files: int | None = None
    process: str | None = None
    nominal: datetime | None = None
    run_id: str | None = None
    made_at: datetime | None = None
    attempt: int | None = None
    definition: int | None = None
    late: bool = False
    made_by: str | None = None
    environment: str | None = None
    plan: str | None = None
    restored_by: str | None = None
    places: str | None = None
    capture: str | None = None
    warnings: str | None = None
    writes: str | None = None


@dataclass(frozen=True)
class EdgeRow:
    process: str
    run_id: str | None
    definition: int | None
    declared: bool = True


@dataclass
class VersionRows:
    """Versions are numbered in the order of history, so that every fold gives the same numbers."""

    known: dict[VersionKey, VersionRow] = field(default_factory=dict)
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
            self.ended((fact.cluster, fact.feed, fact.instance, before), VersionStatus.REPLACED, fact.at, run_id)
        key = (fact.cluster, fact.feed, fact.instance, fact.version)
        row = self._row(key, event_id)
        there: dict[str, Any] = {
            "status": VersionStatus.AVAILABLE,
            "event_id": event_id,
            "seen_at": row.seen_at if row.status is VersionStatus.AVAILABLE else fact.at,
            "ended_at": None,
            "ended_by": None,
            "archived_to": None,
            "path": fact.path,
            "bytes": fact.bytes,
            "records": fact.records if fact.records is not None else row.records,  # nobody counts what lands
            "files": fact.files,
            "restored_by": fact.restored_by or (row.restored_by if row.status is VersionStatus.AVAILABLE else None),
        }
        if fact.process is not None:  # else somebody saw again what a run had made
            there |= {
                "process": fact.process,
                "nominal": fact.nominal,
                "run_id": run_id,
                "made_at": fact.at,
                "attempt": attempt,
                "definition": fact.definition,
                "late": bool(fact.late),
                "plan": plan_of(fact.columns, self.plans),
                "made_by": fact.made_by,
                "places": json.dumps(fact.undeclared_places) if fact.undeclared_places else None,
                "capture": fact.capture,
                "warnings": json.dumps(fact.capture_warnings) if fact.capture_warnings else None,
                "writes": json.dumps(fact.undeclared_writes) if fact.undeclared_writes else None,
                "environment": json.dumps(fact.environment, sort_keys=True) if fact.environment else None,
            }
            for read, is_declared in inputs_of(fact).items():
                if read != key:
                    made = EdgeRow(fact.process, run_id, fact.definition, is_declared)
                    self.edges[row.id, self._row(read, event_id).id] = made
        self._put(key, replace(row, **there))

    def evicted(self, fact: FeedInstanceEvicted, run_id: str | None, version: str) -> None:
        key = (fact.cluster, fact.feed, fact.instance, version)
        self.ended(key, VersionStatus.EVICTED, fact.at, run_id, fact.archived_to)

    def ended(
        self, key: VersionKey, status: VersionStatus, at: datetime, run_id: str | None, archived_to: str | None = None
    ) -> None:
        row = self.known.get(key)
        if row is not None and row.status is VersionStatus.AVAILABLE:
            self._put(key, replace(row, status=status, ended_at=at, ended_by=run_id, archived_to=archived_to))

    def _row(self, key: VersionKey, event_id: int) -> VersionRow:
        if key not in self.known:
            self.last_id += 1
            self._put(key, VersionRow(self.last_id, event_id))
        return self.known[key]

    def _put(self, key: VersionKey, row: VersionRow) -> None:
        self.known[key] = row
        self.changed.add(key)


def inputs_of(fact: FeedInstanceAvailable) -> dict[VersionKey, bool]:
    read = dict.fromkeys(fact.undeclared, False) | {one: True for of in (fact.inputs or {}).values() for one in of}
    found = {
        (one.cluster or fact.cluster, one.feed, one.instance, one.version): is_declared
        for one, is_declared in read.items()
        if one.version
    }
    copied = (fact.source_versions or {}).items()  # from several clusters
    return found | {(cluster, fact.feed, fact.instance, version): True for cluster, version in copied if version}
