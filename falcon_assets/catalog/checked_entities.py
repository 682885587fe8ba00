"""Entities without problems, with facts about all of them, so that a command for one does not parse thousands."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from falcon_assets.catalog.workflow_files import WorkflowPaths, workflow_paths
from falcon_assets.errors import Position, Problem
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.datasource import Datasource
from falcon_assets.model.entity import Entity
from falcon_assets.model.feed import Feed
from falcon_assets.model.flow import Flow
from falcon_assets.model.process import Process
from falcon_assets.model.secret_values import secret_properties, secrets_of, secrets_of_datasource, secrets_of_feed
from falcon_assets.planning.dependencies import Edge, left_out

EntityT = TypeVar("EntityT", Cluster, Feed, Process, Datasource, Flow)


class ReadWhenAsked(Mapping[str, EntityT], Generic[EntityT]):
    def __init__(self, model: type[EntityT], texts: Mapping[str, str]) -> None:
        self._model: type[EntityT] = model
        self._texts = texts
        self._read: dict[str, EntityT] = {}

    def __getitem__(self, name: str) -> EntityT:
        found = self._read.get(name)
        if found is None:  # of two threads both get the same
            found = self._read.setdefault(name, self._model.model_validate(json.loads(self._texts[name])))
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._texts

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model.__name__}, {len(self)})"


@dataclass(frozen=True)
class Relations:
    """Which entities must be parsed for what, by name; of all colos.

    Attributes:
        writers: Feed -> the processes that write it, on any cluster.
        replicated: Feeds that are copied to a cluster.
        compacted: Feeds that are compacted on some cluster.
        imported: Feeds that are made from a datasource on some cluster.
        exported: Feeds that are delivered to a datasource from some cluster.
        rollups: Feeds that are made of others.
        checked: Feeds with checks whose failure makes an instance invalid.
        counted: Feeds that declare their completeness.
        late: Processes that run again for late inputs.
        left_out: Reads that Dagster's asset graph cannot show, see ``planning.dependencies``.
    """

    writers: Mapping[str, Sequence[str]]
    replicated: frozenset[str]
    compacted: frozenset[str]
    imported: frozenset[str]
    exported: frozenset[str]
    rollups: frozenset[str]
    checked: frozenset[str]
    counted: frozenset[str]
    late: frozenset[str]
    left_out: frozenset[Edge]


@dataclass(frozen=True)
class CheckedEntities:
    """All entities of a folder, without problems, by name and in the order of their files.

    Attributes:
        feeds: Those that flows are made of, too.
        positions: Kind and name -> where it is declared.
        critical: Feeds whose versions are critical unless users set another status.
        secrets: Values that must not be shown.
        programs: The files of their workflows.
    """

    clusters: Mapping[str, Cluster]
    feeds: Mapping[str, Feed]
    processes: Mapping[str, Process]
    datasources: Mapping[str, Datasource]
    flows: Mapping[str, Flow]
    positions: Mapping[tuple[str, str], Position]
    warnings: tuple[Problem, ...]
    critical: frozenset[str]
    secrets: frozenset[str]
    programs: WorkflowPaths
    relations: Relations


def summed_up(declared: Sequence[tuple[Entity, Position]], warnings: tuple[Problem, ...]) -> CheckedEntities:
    entities = [one for one, _ in declared]
    clusters = {one.name: one for one in entities if isinstance(one, Cluster)}
    feeds = {one.name: one for one in entities if isinstance(one, Feed)}
    processes = {one.name: one for one in entities if isinstance(one, Process)}
    return CheckedEntities(
        clusters,
        feeds,
        processes,
        {one.name: one for one in entities if isinstance(one, Datasource)},
        {one.name: one for one in entities if isinstance(one, Flow)},
        {(one.kind, one.name): position for one, position in declared},
        warnings,
        frozenset(name for name, feed in feeds.items() if feed.lifecycle_status == "critical"),
        frozenset(secret for one in entities for secret in secrets_in(one)),
        workflow_paths(processes.values()),
        relations(feeds.values(), processes.values()),
    )


def relations(feeds: Collection[Feed], processes: Collection[Process]) -> Relations:
    writers: dict[str, list[str]] = {}
    late = set()
    for process in processes:
        for feed in dict.fromkeys(output.feed for output in process.outputs):
            writers.setdefault(feed, []).append(process.name)
        if process.late_process:
            late.add(process.name)
    replicated = (feed.name for feed in feeds if any(one.type == "target" for one in feed.clusters))
    compacted = (feed.name for feed in feeds if feed.compact)
    imported = (feed.name for feed in feeds if any(one.import_ for one in feed.clusters))
    exported = (feed.name for feed in feeds if any(one.export for one in feed.clusters))
    rollups = (feed.name for feed in feeds if feed.rollup)
    checked = (feed.name for feed in feeds if any(one.severity == "error" for one in feed.checks))
    counted = (feed.name for feed in feeds if feed.completeness)
    return Relations(
        writers,
        frozenset(replicated),
        frozenset(compacted),
        frozenset(imported),
        frozenset(exported),
        frozenset(rollups),
        frozenset(checked),
        frozenset(counted),
        frozenset(late),
        left_out(processes, feeds),
    )


def secrets_in(one: Entity) -> Iterator[str]:
    """The secrets that are written out in a definition; there may be empty texts among them."""
    if isinstance(one, Cluster):
        return secrets_of(one)
    if isinstance(one, Feed):
        return secrets_of_feed(one)
    return secrets_of_datasource(one) if isinstance(one, Datasource) else secret_properties(one.properties)
