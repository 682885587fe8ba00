"""Questions about lineage: sources of a version, its impact, the path between two versions, and their difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field
from sqlalchemy import Connection

from falcon_assets.errors import UnknownInstanceError, printable
from falcon_assets.features.lineage.column_impact import Affected, affected_by
from falcon_assets.features.lineage.datasets import DatasetEdge, made_from, sent_to
from falcon_assets.features.lineage.definitions import Compared, changed_definitions, code_version
from falcon_assets.features.lineage.difference import CodeVersion, Difference, difference
from falcon_assets.features.lineage.graph import Edge, Graph
from falcon_assets.features.lineage.lifecycle_operations import VersionLifecycle, lifecycle_of
from falcon_assets.features.lineage.metadata import Relation, relations
from falcon_assets.features.lineage.places import (
    Crossing,
    PlaceEdge,
    above_through,
    edges_through,
    places_crossed,
    places_read,
    places_written,
    reached_through,
)
from falcon_assets.features.lineage.store import graph_of, reached, readers_of_places, same_snapshot, writers_of
from falcon_assets.features.lineage.subject import OfOneVersion, VersionQuery, find_version, find_versions
from falcon_assets.history.events.data_version import Version
from falcon_assets.history.folding.version_rows import columns_of_plans
from falcon_assets.model.access import Role, may_read
from falcon_assets.model.instant import Instant, format_instant
from falcon_assets.operations.acting import acting
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Change, Given, Operation, Result
from falcon_assets.planning.version_columns import OutputColumns

METADATA = "Include feeds, processes and clusters, with their owners, tags, groups, pipelines and colos."


@dataclass(frozen=True)
class Lineage:
    """A version and the graph around it, without versions of feeds that the user may not read.

    Attributes:
        code: None: not recorded.
        hidden: How many versions were left out.
        columns: By the plan of versions, without sources in feeds that the user may not read.
        column: The column that was asked for; None: all.
        metadata: Relations of versions to entities, and between those; empty unless asked for.
        places: Undeclared reads and writes of the runs; reads only where the question goes up.
        through: Edges that skip places: from inputs of the run that wrote there to the version whose run read there.
        datasets: What imports made versions from, where the question goes up, and where versions were sent, else.
    """

    version: Version
    code: CodeVersion | None
    lifecycle: VersionLifecycle
    graph: Graph
    hidden: int
    columns: Mapping[str, OutputColumns]
    column: str | None = None
    metadata: Sequence[Relation] = ()
    places: Sequence[PlaceEdge] = ()
    through: Sequence[Edge] = ()
    datasets: Sequence[DatasetEdge] = ()

    @property
    def past_places(self) -> Graph:
        return replace(self.graph, edges=[*self.graph.edges, *self.through])

    @property
    def derived(self) -> list[Version]:
        others = (one for number, one in self.graph.versions.items() if number != self.version.number)
        return sorted(others, key=lambda one: (one.seen_at or one.instance, one.number))

    def columns_of(self, version: Version) -> OutputColumns | None:
        return self.columns.get(version.plan or "")

    @property
    def outside(self) -> Sequence[PlaceEdge | DatasetEdge]:
        """Edges from and to what is of no feed."""
        return [*self.places, *self.datasets]

    @property
    def other_nodes(self) -> list[dict[str, Any]]:
        outside = {node["id"]: node for node in (one.as_node() for one in self.outside)}
        return [*outside.values(), *(one.as_node() for one in sorted({one.target for one in self.metadata}))]

    def as_data(self) -> dict[str, Any]:
        code = self.code.code if self.code else None
        columns = self.columns_of(self.version)
        made = columns.as_data() if columns else {"columns": None, "rows_from": None}
        version = {**self.version.as_data(), "code": code, **self.lifecycle.as_data(), **made}
        graph = self.graph.as_data()
        nodes = [*graph["nodes"], *self.other_nodes]
        edges = [*graph["edges"], *(one.as_edge() for one in self.outside), *(one.as_edge() for one in self.metadata)]
        return {"nodes": nodes, "edges": edges, "version": version, "hidden": self.hidden}


_Some = TypeVar("_Some", bound=Lineage)


@dataclass(frozen=True)
class Impact(Lineage):
    """All that was made from a version or a column; ``affected`` are dependent columns by number of version."""

    affected: Mapping[int, Affected] = field(default_factory=dict)

    @property
    def recompute(self) -> list[tuple[str, str, datetime]]:
        """Instances (workload, cluster, nominal time) that made or sent present data, in order of making."""
        made = [one for one in self.derived if one.is_present]
        there = {one.number for one in made}
        again = [(one.process, one.cluster, one.nominal) for one in made if one.process and one.nominal]
        again += [(one.process, one.cluster, one.nominal) for one in self.datasets if one.number in there]
        return list(dict.fromkeys(again))

    def as_data(self) -> dict[str, Any]:
        again = [
            {"entity": entity, "cluster": cluster, "instance": format_instant(nominal)}
            for entity, cluster, nominal in self.recompute
        ]
        dependent = {self.graph.versions[number].id: one.as_data() for number, one in self.affected.items()}
        return {**super().as_data(), "recompute": again, "affected": dependent}


def show_lineage(
    installation: Installation, query: VersionQuery, *, up: bool = True, down: bool = False, depth: int | None = None
) -> Lineage:
    """Shows what a version was made from, and what was made from it.

    Raises:
        UnknownEntityError: there is no such feed, not on this cluster, or on several clusters and none is named.
        UnknownInstanceError: no such version is recorded.
        DeniedError: the user may not read the feed.
    """
    with installation.tables_caught_up().connect() as connection:
        version = find_version(installation, connection, query)
        same = _same(installation, connection, version)
        numbers = {version.number}
        numbers |= reached(connection, numbers, up=True, depth=depth) if up else set()
        below, crossed = _below(connection, same, depth) if down else (set[int](), [])
        whole = graph_of(connection, numbers | below).merged(same, version.number)
        found = _with_crossings(_lineage(installation, connection, version, whole), crossed)
        read = places_read(found.graph.versions.values()) if up else []
        written = places_written(found.graph, None if up else version.number)
        shown = list(found.graph.versions.values())
        datasets = [*(made_from(connection, shown) if up else []), *(sent_to(connection, shown) if down else [])]
        return replace(found, places=list(dict.fromkeys([*read, *written, *found.places])), datasets=datasets)


def lineage_impact(installation: Installation, query: VersionQuery, column: str | None = None) -> Impact:
    """Returns everything made from a version, or from a column; UnknownInstanceError also for a wrong column.

    Raises otherwise as :func:`show_lineage`.
    """
    with installation.tables_caught_up().connect() as connection:
        version = find_version(installation, connection, query)
        same = _same(installation, connection, version)
        below, crossed = _below(connection, same)
        graph = graph_of(connection, below).merged(same, version.number)
        affected: dict[int, Affected] = {}
        if column is not None:
            columns = _columns_of(connection, graph)
            _require_column(version, columns.get(version.plan or ""), column)
            past = replace(graph, edges=[*graph.edges, *edges_through(graph, crossed, version.number)])
            affected = affected_by(past, columns, version.number, column)
            graph = graph.among({version.number, *affected})
        found = _with_crossings(_lineage(installation, connection, version, graph), crossed)
        shown = {number: one for number, one in affected.items() if number in found.graph.versions}
        places = [*places_written(found.graph, version.number), *found.places]
        sent = sent_to(connection, list(found.graph.versions.values()))
        return Impact(**{**vars(found), "column": column, "places": places, "datasets": sent}, affected=shown)


def with_metadata(installation: Installation, found: _Some) -> _Some:
    who, entities = acting(installation.settings), installation.all_entities
    feeds = {name: one for name, one in entities.feeds.items() if may_read(one.acl, who)}
    processes = {name: one for name, one in entities.processes.items() if may_read(one.acl, who)}
    clusters = {name: one for name, one in entities.everywhere.items() if may_read(one.acl, who)}
    return replace(found, metadata=relations(found.graph.versions.values(), feeds, processes, clusters))


def lineage_path(installation: Installation, start: VersionQuery, end: VersionQuery) -> Lineage:
    """Returns all between two versions; UnknownInstanceError also where the second was not made from the first.

    Raises otherwise as :func:`show_lineage`.
    """
    with installation.tables_caught_up().connect() as connection:
        first, last = (find_version(installation, connection, one) for one in (start, end))
        same = _same(installation, connection, first)
        below, crossed = _below(connection, same)
        if last.number not in below:
            raise UnknownInstanceError(f"{last.id} was not made from {first.id}")
        above = above_through(last.number, lambda those: reached(connection, those, up=True), crossed)
        whole = graph_of(connection, {first.number} | (below & above)).merged(same, first.number)
        found = _with_crossings(_lineage(installation, connection, first, whole), crossed)
        return replace(found, places=[*places_written(found.graph, first.number), *found.places])


def lineage_diff(
    installation: Installation, query: VersionQuery, before: str | None = None, after: str | None = None
) -> Difference:
    """Compares two versions of an instance; UnknownInstanceError also where there is no second version.

    Raises otherwise as :func:`show_lineage`.
    """
    with installation.tables_caught_up().connect() as connection:

        def named(version: str | None) -> Version:
            return find_version(
                installation, connection, VersionQuery(query.feed, query.instance, query.cluster, version)
            )

        new, every = named(after), find_versions(installation, connection, query)
        place = next(number for number, one in enumerate(every) if one.number == new.number)
        if before is None and not place:
            raise UnknownInstanceError(f"{new.id} has no version before it: say which two with --from and --to")
        old = named(before) if before else every[place - 1]
        inputs = [_inputs(installation, connection, one) for one in (old, new)]
        codes = [code_version(connection, one) for one in (old, new)]
        columns = columns_of_plans(connection, {one.plan for one in (old, new) if one.plan})
        both = (columns.get(old.plan or ""), columns.get(new.plan or ""))
        definitions = changed_definitions(installation, connection, *map(Compared, (old, new), inputs))
    return difference((old, new), (inputs[0], inputs[1]), (codes[0], codes[1]), both, definitions)


class ShowLineage(OfOneVersion):
    """Show which versions a version of an instance was made from.

    INSTANCE is a time, YYYY-MM-DDTHH:MMZ.
    """

    command = "lineage show"
    page = "lineage"
    direction: Annotated[Literal["up", "down", "both"], Given(shows_default=True)] = Field(
        "up", description="up: its inputs; down: what was made from it."
    )
    depth: int | None = Field(None, ge=1, le=100, description="Number of steps to follow. Default: all; in a tree 5.")
    metadata: bool = Field(False, description=METADATA)

    def run(self, installation: Installation) -> Lineage:
        up, down = self.direction != "down", self.direction != "up"
        found = show_lineage(installation, self.query, up=up, down=down, depth=self.depth)
        return with_metadata(installation, found) if self.metadata else found


class ImpactOfVersion(OfOneVersion, Change):
    """Show everything that was made from a version, or from one of its columns.

    Includes indirect results, and lists the instances that have to rerun to replace them. INSTANCE is a time,
    YYYY-MM-DDTHH:MMZ.
    """

    command = "lineage impact"
    role = Role.LAUNCHER
    column: str | None = Field(None, description="Only what depends on this column.")
    rerun: bool = Field(False, description="Rerun the affected instances, each after its inputs.")
    reason: str = Field("", description="With --rerun: reason for the change, kept in the audit log.")
    dry_run: bool = Field(False, description="With --rerun: show what would change; change nothing.")
    metadata: bool = Field(False, description=METADATA)

    def run(self, installation: Installation) -> Impact | Result:
        found = lineage_impact(installation, self.query, self.column)
        if self.rerun:
            from falcon_assets.features.lineage.searching import rerun_impact  # noqa: PLC0415 - takes seconds

            return rerun_impact(installation, found, self)
        return with_metadata(installation, found) if self.metadata else found


class LineagePath(Operation):
    """Show the steps by which one version was made from another.

    FROM and TO are versions, written as [CLUSTER/]FEED/INSTANCE[@VERSION]. The exit code is 1 if TO was not made from
    FROM.
    """

    command = "lineage path"
    origin: Annotated[VersionQuery, Given("FROM")]
    result: Annotated[VersionQuery, Given("TO")]
    metadata: bool = Field(False, description=METADATA)

    def run(self, installation: Installation) -> Lineage:
        found = lineage_path(installation, self.origin, self.result)
        return with_metadata(installation, found) if self.metadata else found


class DiffVersions(Operation):
    """Show why two versions of an instance differ.

    Compares their inputs; the definitions of the process, its cluster and the feeds, key by key; workflow, columns and
    environment (Python, packages). INSTANCE is a time, YYYY-MM-DDTHH:MMZ.
    """

    command = "lineage diff"
    feed: Annotated[str, Given("FEED")]
    instance: Annotated[Instant, Given("INSTANCE")]
    cluster: str | None = Field(
        None, description="Cluster of the instance: needed if several clusters have versions of it."
    )
    before: Annotated[str | None, Given(flags=("--from",), metavar="VERSION")] = Field(
        None, description="Older version (default: the one before --to)."
    )
    after: Annotated[str | None, Given(flags=("--to",), metavar="VERSION")] = Field(
        None, description="Newer version (default: the present one, else the last)."
    )

    def run(self, installation: Installation) -> Difference:
        query = VersionQuery(self.feed, self.instance, self.cluster)
        return lineage_diff(installation, query, self.before, self.after)


def _same(installation: Installation, connection: Connection, version: Version) -> set[int]:
    """Returns all rows of a version: a snapshot may be recorded for one instance and read for another."""
    feed = installation.all_entities.feeds.get(version.feed)
    return same_snapshot(connection, version) if feed is not None and feed.snapshot else {version.number}


def _below(connection: Connection, starts: set[int], depth: int | None = None) -> tuple[set[int], list[Crossing]]:
    step = None if depth is None else 1
    return reached_through(
        starts,
        lambda those: reached(connection, those, up=False, depth=step) if those else set(),
        lambda those: writers_of(connection, those),
        lambda: readers_of_places(connection),
        depth,
    )


def _with_crossings(found: Lineage, crossed: Sequence[Crossing]) -> Lineage:
    places = places_crossed(found.graph, crossed, found.version.number)
    return replace(found, places=places, through=edges_through(found.graph, crossed, found.version.number))


def _inputs(installation: Installation, connection: Connection, version: Version) -> list[Version]:
    near = graph_of(connection, reached(connection, [version.number], up=True, depth=1))
    may_read_feed = _readable(installation)
    graph = near.only(lambda one: may_read_feed(one.feed))
    return [graph.versions[edge.input] for edge in graph.edges if edge.output == version.number]


def _lineage(installation: Installation, connection: Connection, version: Version, whole: Graph) -> Lineage:
    may_read_feed = _readable(installation)
    graph = whole.only(lambda one: may_read_feed(one.feed))
    columns = {plan: one.only(may_read_feed) for plan, one in _columns_of(connection, graph).items()}
    lifecycle, code = lifecycle_of(installation, connection, version), code_version(connection, version)
    return Lineage(version, code, lifecycle, graph, len(whole.versions) - len(graph.versions), columns)


def _columns_of(connection: Connection, graph: Graph) -> dict[str, OutputColumns]:
    return columns_of_plans(connection, {one.plan for one in graph.versions.values() if one.plan})


def _readable(installation: Installation) -> Callable[[str], bool]:
    who, feeds = acting(installation.settings), installation.all_entities.feeds
    return lambda feed: feed not in feeds or may_read(feeds[feed].acl, who)


def _require_column(version: Version, columns: OutputColumns | None, column: str) -> None:
    names = [one.name for one in columns.each] if columns else []
    if names and column not in names:
        raise UnknownInstanceError(f"{version.id} has no column {printable(column)!r}: it has {', '.join(names)}")
