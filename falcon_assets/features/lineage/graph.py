"""The graph of versions by their dependencies, and its forms as tree, DOT and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from falcon_assets.history.events.data_version import Version
from falcon_assets.model.instant import format_instant


@dataclass(frozen=True)
class Edge:
    """A version was made from another, both by number; None: not recorded; ``declared``: by the definition."""

    output: int
    input: int
    process: str
    run: str | None
    definition: int | None
    declared: bool


@dataclass(frozen=True)
class Graph:
    """Versions by number, and the edges between them only."""

    versions: Mapping[int, Version]
    edges: Sequence[Edge]

    def as_data(self) -> dict[str, Any]:
        """Edges lead from input to output."""
        nodes = sorted((one.as_node() for one in self.versions.values()), key=lambda node: str(node["id"]))
        edges = [
            {
                "from": self.versions[one.input].id,
                "to": self.versions[one.output].id,
                "process": one.process,
                "run": one.run,
                "definition": one.definition,
                "declared": one.declared,
            }
            for one in self.edges
        ]
        return {"nodes": nodes, "edges": sorted(edges, key=lambda edge: (str(edge["from"]), str(edge["to"])))}

    def next(self, *, up: bool) -> dict[int, list[Edge]]:
        """Returns the edges to inputs (``up``) or outputs by version, in the order of names."""
        found: dict[int, list[Edge]] = {}
        ids = {number: one.id for number, one in self.versions.items()}
        for edge in sorted(self.edges, key=lambda edge: ids[edge.input if up else edge.output]):
            found.setdefault(edge.output if up else edge.input, []).append(edge)
        return found

    def only(self, wanted: Callable[[Version], bool]) -> Graph:
        return self.among({number for number, one in self.versions.items() if wanted(one)})

    def merged(self, same: Collection[int], into: int) -> Graph:
        """Replaces several versions with equal data by one, with the outputs of all."""
        others = set(same) - {into}
        if not others:
            return self
        versions = {number: one for number, one in self.versions.items() if number not in others}
        edges = [replace(one, input=into) if one.input in others else one for one in self.edges]
        return Graph(versions, list({(one.output, one.input): one for one in edges if one.output in versions}.values()))

    def among(self, numbers: Collection[int]) -> Graph:
        versions = {number: one for number, one in self.versions.items() if number in numbers}
        return Graph(versions, [one for one in self.edges if one.output in versions and one.input in versions])


@dataclass(frozen=True)
class Line:
    """A line of a tree; ``edge`` is None at the root, a repeated version is not unfolded again."""

    depth: int
    version: Version
    edge: Edge | None
    is_repeated: bool


def tree(graph: Graph, root: int, *, up: bool) -> Iterator[Line]:
    """Yields the tree of inputs (``up``) or outputs; each version is unfolded at its first place only."""
    following, seen = graph.next(up=up), set[int]()
    waiting: list[tuple[int, int, Edge | None]] = [(0, root, None)]
    while waiting:
        depth, number, edge = waiting.pop()
        below = following.get(number, [])
        yield Line(depth, graph.versions[number], edge, is_repeated=number in seen and bool(below))
        if number in seen:
            continue
        seen.add(number)
        waiting += [(depth + 1, one.input if up else one.output, one) for one in reversed(below)]


def dot(
    graph: Graph,
    relations: Sequence[tuple[str, str, str]] = (),
    places: Sequence[tuple[str, str, str]] = (),
    folders: Collection[str] = (),
) -> str:
    """Returns DOT; ``relations`` are (id, id, label), ``places`` (id, id, process), ``folders`` are ids of places."""
    lines = ["digraph lineage {", "  rankdir=LR;", "  node [shape=box];"]
    for one in sorted(graph.versions.values(), key=lambda one: one.id):
        style = "" if one.exists else ", style=dashed"
        text = f"{one.feed} {format_instant(one.instance)}\n{one.cluster} @{one.version[:12]}\n{one.status.value}"
        lines.append(f"  {_quoted(one.id)} [label={_quoted(text)}{style}];")
    ids = {number: one.id for number, one in graph.versions.items()}
    for edge in sorted(graph.edges, key=lambda edge: (ids[edge.input], ids[edge.output])):
        style = "" if edge.declared else ", style=dotted"
        lines.append(
            f"  {_quoted(ids[edge.input])} -> {_quoted(ids[edge.output])} [label={_quoted(edge.process)}{style}];"
        )
    for place in sorted(folders):
        lines.append(f"  {_quoted(place)} [shape=folder];")
    for start, end, process in places:
        lines.append(f"  {_quoted(start)} -> {_quoted(end)} [label={_quoted(process)}, style=dotted];")
    for other in sorted({to for _, to, _ in relations} - set(folders)):
        lines.append(f"  {_quoted(other)} [shape=ellipse];")
    for one_id, to, label in relations:
        lines.append(f"  {_quoted(one_id)} -> {_quoted(to)} [label={_quoted(label)}, style=dashed, color=gray];")
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


_Any = TypeVar("_Any")


@dataclass(frozen=True)
class Several:
    """Versions of a feed, or instances of a process, on a cluster; ``states`` is empty where they have none."""

    name: str
    cluster: str
    count: int
    first: datetime
    last: datetime
    states: tuple[tuple[str, int], ...] = ()

    def words(self, one: str) -> str:
        states = ", ".join(f"{many:,} {state}" for state, many in self.states)
        plural = one if self.count == 1 else f"{one}s"
        span = format_instant(self.first)
        span += f" to {format_instant(self.last)}" if self.last != self.first else ""
        return f"{self.name} on {self.cluster}: {self.count:,} {plural}{f' ({states})' if states else ''}, {span}"


def versions_by_feed(versions: Iterable[Version]) -> list[Several]:
    found = []
    for (feed, cluster), own in _by(versions, lambda one: (one.feed, one.cluster)).items():
        states = Counter(one.status.value for one in own).most_common()
        instances = [one.instance for one in own]
        found.append(Several(feed, cluster, len(own), min(instances), max(instances), tuple(states)))
    return sorted(found, key=lambda one: (one.name, one.cluster))


def instances_by_process(instances: Iterable[tuple[str, str, datetime]]) -> list[Several]:
    found = []
    for (process, cluster), own in _by(instances, lambda one: one[:2]).items():
        times = [nominal for _, _, nominal in own]
        found.append(Several(process, cluster, len(own), min(times), max(times)))
    return found


def _by(every: Iterable[_Any], key: Callable[[_Any], tuple[str, str]]) -> dict[tuple[str, str], list[_Any]]:
    found: dict[tuple[str, str], list[_Any]] = {}
    for one in every:
        found.setdefault(key(one), []).append(one)
    return found
