"""Recorded runs: their ends, inputs, outputs and SQL; evicted and restored versions."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, case, exists, func, literal, null, or_, select, true, union_all

from falcon_assets.catalog.recorded_entities import recorded_data
from falcon_assets.entities.definition_versions import DefinitionVersion, definition_history
from falcon_assets.entities.workflow_contents import content_parts, kept_files
from falcon_assets.errors import OldDefinitionError
from falcon_assets.features.lineage.datasets import DatasetEdge, made_from, sent_by
from falcon_assets.features.lineage.store import each_following, every_version, versions_of_numbers
from falcon_assets.history.database import rows_of
from falcon_assets.history.events.data_version import Version
from falcon_assets.history.folding.version_rows import columns_of_plans, version_of_row
from falcon_assets.history.tables import CONSUMED, DATA_VERSIONS, PROCESS_INSTANCES, VERSION_EDGES
from falcon_assets.instances.store.known_instances import ENDS
from falcon_assets.planning.instance_record import InstanceState, KeyedInstance
from falcon_assets.planning.version_columns import OutputColumns, VersionStatus

_ENGINE = "spark-sql"
_LARGEST = 1 << 18
"""In bytes; each run carries the text in its event."""


def recorded_sql(connection: Connection, definition: DefinitionVersion, *, is_late: bool = False) -> str | None:
    """Returns the text of the workflow of a process; None: not SQL, not kept, too large, or a late rerun may differ."""
    try:
        said = recorded_data(definition.name, definition.text or "")
    except OldDefinitionError:
        return None
    workflow = said.get("workflow") if isinstance(said, dict) else None
    if definition.kind != "process" or not isinstance(workflow, dict) or workflow.get("engine") != _ENGINE:
        return None
    if is_late and "late_process" in said:
        return None
    path = posixpath.normpath(str(workflow.get("path")))
    kept = kept_files(connection, definition.name, definition.version)
    found = next((one for one in kept if one.hash and posixpath.normpath(one.path) == path), None)
    if found is None:
        return None
    text = b"".join(content_parts(connection, found.hash or ""))
    return text.decode("utf-8", "replace") if len(text) <= _LARGEST else None


_TABLE, _INSTANCE, _EDGE, _CONSUMED = DATA_VERSIONS.c, PROCESS_INSTANCES.c, VERSION_EDGES.c, CONSUMED.c
_KEY = ("process", "cluster", "nominal", "run_id")
_AT_ONCE = 500


@dataclass(frozen=True, kw_only=True)
class RunEnd(KeyedInstance):
    """The end of an instance, in a run or before it had one: SUCCEEDED, FAILED, KILLED or TIMED_OUT."""

    ended: datetime

    @property
    def succeeded(self) -> bool:
        return self.state is InstanceState.SUCCEEDED


@dataclass(frozen=True)
class RecordedRun:
    """A run of an instance; ``columns`` are by plan, None in others means not recorded.

    Attributes:
        datasets: Of datasources: what an import was made from, or an export was sent to.
    """

    end: RunEnd
    inputs: Sequence[Version]
    outputs: Sequence[Version]
    definition: DefinitionVersion | None
    columns: Mapping[str, OutputColumns]
    sql: str | None = None
    datasets: Sequence[DatasetEdge] = ()


@dataclass(frozen=True)
class Selection:
    """Filters; ``since`` is of ends, ``names`` are processes, replications, or feeds that they wrote or removed."""

    since: datetime | None = None
    names: Collection[str] = ()
    cluster: str | None = None


def run_ends(connection: Connection, asked: Selection) -> Iterator[list[RunEnd]]:
    """Yields, by time and in parts, runs that made versions and the last ends of other instances."""
    same = and_(*(_INSTANCE[name] == _TABLE[name] for name in _KEY), _INSTANCE.state == InstanceState.SUCCEEDED.value)
    done = func.coalesce(func.max(_INSTANCE.ended), func.max(_TABLE.made_at), func.max(_TABLE.seen_at))
    ended = done.label("ended")
    said = (literal("").label("reason"), *(func.max(_TABLE[name]).label(name) for name in ("attempt", "definition")))
    started = func.max(_INSTANCE.started).label("started")
    succeeded = literal(InstanceState.SUCCEEDED.value).label("state")
    made = (
        select(
            *(_TABLE[name] for name in _KEY),
            succeeded,
            ended,
            started,
            *said,
        )
        .outerjoin_from(DATA_VERSIONS, PROCESS_INSTANCES, same)
        .where(_TABLE.run_id.is_not(None), _TABLE.nominal.is_not(None), *_on(_TABLE.cluster, asked))
        .group_by(*(_TABLE[name] for name in _KEY))
    )
    if asked.names:
        made = made.having(func.bool_or(or_(_TABLE.process.in_(asked.names), _TABLE.feed.in_(asked.names))))
    if asked.since is not None:
        made = made.having(done >= asked.since)
    has_made = exists().where(*(_TABLE[name] == _INSTANCE[name] for name in _KEY))
    timed_out = _INSTANCE.state == InstanceState.TIMED_OUT.value
    without = or_(timed_out, and_(_INSTANCE.state == InstanceState.KILLED.value, _INSTANCE.started.is_(None)))

    def of_run(name: str) -> ColumnElement[Any]:
        """Hides values of an earlier run where the last end has none."""
        return case((without, null()), else_=_INSTANCE[name]).label(name)

    others = select(
        *(_INSTANCE[name] for name in _KEY[:-1]),
        of_run("run_id"),
        _INSTANCE.state,
        _INSTANCE.ended,
        of_run("started"),
        _INSTANCE.reason,
        of_run("attempt"),
        of_run("definition"),
    ).where(
        _INSTANCE.state.in_([one.value for one in ENDS]),
        _INSTANCE.ended.is_not(None),
        or_(without, and_(_INSTANCE.run_id.is_not(None), ~has_made)),
        *_on(_INSTANCE.cluster, asked),
        *([_INSTANCE.ended >= asked.since] if asked.since is not None else ()),
        *([_INSTANCE.process.in_(asked.names)] if asked.names else ()),
    )
    every = union_all(made, others)
    ordered = every.order_by("ended", *_KEY).execution_options(yield_per=_AT_ONCE)
    for part in connection.execute(ordered).partitions():
        yield [_end(row) for row in part]


def _end(row: Any) -> RunEnd:
    return RunEnd(**{**row._mapping, "state": InstanceState(row.state), "attempt": row.attempt or 0})


def evicted_versions(connection: Connection, asked: Selection) -> Iterator[list[Version]]:
    status = _TABLE.status == VersionStatus.EVICTED.value
    return _versions(connection, asked, _TABLE.ended_at, status)


def restored_versions(connection: Connection, asked: Selection) -> Iterator[list[Version]]:
    return _versions(connection, asked, _TABLE.seen_at, _TABLE.restored_by.is_not(None))


def _versions(
    connection: Connection, asked: Selection, at: ColumnElement[datetime], *wanted: ColumnElement[bool]
) -> Iterator[list[Version]]:
    conditions = [*wanted, at.is_not(None), *_on(_TABLE.cluster, asked)]
    conditions += [at >= asked.since] if asked.since is not None else []
    conditions += [_TABLE.feed.in_(asked.names)] if asked.names else []
    statement = every_version().where(*conditions).order_by(at, _TABLE.id)
    for part in connection.execute(statement.execution_options(yield_per=_AT_ONCE)).partitions():
        yield [version_of_row(row) for row in part]


def _on(column: ColumnElement[str], asked: Selection) -> list[ColumnElement[bool]]:
    return [column == asked.cluster] if asked.cluster is not None else []


def _place(version: Version) -> tuple[str, str, datetime, int]:
    return version.cluster, version.feed, version.instance, version.number


class RunRecords:
    """Finds inputs and outputs of runs; caches definitions and columns, which many runs share."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._columns: dict[str, OutputColumns] = {}
        self._definitions: dict[tuple[str, str], dict[int, DefinitionVersion]] = {}
        self._sql: dict[tuple[str, int, bool], str | None] = {}

    def of(self, ends: Sequence[RunEnd]) -> list[RecordedRun]:
        keys = {(one.process, one.cluster, one.nominal, one.run_id) for one in ends}
        given = rows_of(DATA_VERSIONS, {"run_id": sorted({one.run_id for one in ends if one.run_id})})
        of_runs = self._connection.execute(every_version().join(given, _TABLE.run_id == given.c.run_id))
        outputs: dict[tuple[str, str, datetime, str], list[Version]] = {}
        for one in map(version_of_row, of_runs):
            key = (one.process or "", one.cluster, one.nominal or one.instance, one.run_id or "")
            if key in keys:
                outputs.setdefault(key, []).append(one)
        made = {one.number: one for several in outputs.values() for one in several}
        read, moved = self._read(made), self._moved(ends, list(made.values()))
        found = []
        for end in ends:
            own = sorted(outputs.get((end.process, end.cluster, end.nominal, end.run_id or ""), []), key=_place)
            inputs = {one.number: one for output in own for one in read.get(output.number, [])}
            several = list(inputs.values()) if own or not end.succeeded else self._consumed(end)
            plans = self._columns_of([*own, *several])
            definition, is_late = self._definition(end), any(one.late for one in own)
            sql = self._sql_of(definition, is_late=is_late)
            datasets = moved.get((end.process, end.cluster, end.nominal, end.run_id), ())
            found.append(RecordedRun(end, sorted(several, key=_place), own, definition, plans, sql, datasets))
        return found

    def _moved(
        self, ends: Sequence[RunEnd], made: Sequence[Version]
    ) -> dict[tuple[str, str, datetime, str | None], list[DatasetEdge]]:
        """Returns the datasets of datasources by the run of an instance."""
        found: dict[tuple[str, str, datetime, str | None], list[DatasetEdge]] = {}
        runs = sorted({one.run_id for one in ends if one.run_id})
        for edge in (*made_from(self._connection, made), *sent_by(self._connection, runs)):
            found.setdefault((edge.process, edge.cluster, edge.nominal, edge.run), []).append(edge)
        return found

    def _columns_of(self, versions: Collection[Version]) -> dict[str, OutputColumns]:
        plans = {one.plan for one in versions if one.plan}
        self._columns.update(columns_of_plans(self._connection, plans - self._columns.keys()))
        return {plan: self._columns[plan] for plan in plans if plan in self._columns}

    def _read(self, made: dict[int, Version]) -> dict[int, list[Version]]:
        """Returns the inputs of each version; those of other runs that made the same version are left out."""
        outputs = rows_of(VERSION_EDGES, {"output": list(made)})
        edges = each_following(select(VERSION_EDGES).where(_EDGE.output == outputs.c.output))
        rows = self._connection.execute(select(edges).join_from(outputs, edges, true()))
        own = [(row.output, row.input) for row in rows if row.run_id == made[row.output].run_id]
        known = {one.number: one for one in versions_of_numbers(self._connection, {number for _, number in own})}
        found: dict[int, list[Version]] = {}
        for output, number in own:
            found.setdefault(output, []).append(known[number])
        return found

    def _consumed(self, end: RunEnd) -> list[Version]:
        """Returns the inputs of a run without outputs, if it is the last of its instance."""
        last = exists().where(*(_INSTANCE[name] == getattr(end, name) for name in _KEY), _INSTANCE.ended == end.ended)
        joined = and_(
            _TABLE.cluster == _CONSUMED.input_cluster,
            *(_TABLE[name] == _CONSUMED[name] for name in ("feed", "instance", "version")),
        )
        own = [_CONSUMED[name] == getattr(end, name) for name in ("process", "cluster", "nominal")]
        known = every_version().join(CONSUMED, joined).where(*own, last)
        return list({one.number: one for one in map(version_of_row, self._connection.execute(known))}.values())

    def _sql_of(self, definition: DefinitionVersion | None, *, is_late: bool) -> str | None:
        if definition is None:
            return None
        key = (definition.name, definition.version, is_late)
        if key not in self._sql:
            self._sql[key] = recorded_sql(self._connection, definition, is_late=is_late)
        return self._sql[key]

    def _definition(self, end: RunEnd) -> DefinitionVersion | None:
        if end.definition is None:
            return None
        for kind, name in (("process", end.process), ("feed", end.process.partition(" from ")[0])):
            if (kind, name) not in self._definitions:
                history = definition_history(self._connection, kind, name)
                self._definitions[kind, name] = {one.version: one for one in history}
            if end.definition in self._definitions[kind, name]:
                return self._definitions[kind, name][end.definition]
        return None
