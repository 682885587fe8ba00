"""Dependencies must not come back to where they started."""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx

from falcon_assets.catalog.declared import Definitions
from falcon_assets.errors import Problem


def check_cycles(definitions: Definitions) -> Iterator[Problem]:
    """For each process in a cycle a shortest one through it, unless a cycle through it is reported already.

    A process that reads its own output is a cycle too, even where it reads earlier instances only.
    """
    graph = _dependencies(definitions)
    reported: set[str] = set()
    for component in nx.strongly_connected_components(graph):
        if len(component) == 1:
            continue
        inner = graph.subgraph(component)
        for node in sorted(node for node in component if node[0] == "process"):
            if node[1] not in reported:
                cycle = _shortest_cycle(inner, node)
                reported.update(name for kind, name, _ in cycle if kind == "process")
                yield _problem(definitions, cycle)


Node = tuple[str, str, str]
"""Kind, name and cluster."""


def _dependencies(definitions: Definitions) -> nx.DiGraph[Node]:
    graph: nx.DiGraph[Node] = nx.DiGraph()
    for process in definitions.processes.values():
        for entry in process.entity.clusters:
            node = ("process", process.entity.name, entry.name)
            graph.add_edges_from((("feed", declared.feed, entry.name), node) for declared in process.entity.inputs)
            graph.add_edges_from((node, ("feed", output.feed, entry.name)) for output in process.entity.outputs)
    for feed in definitions.feeds.values():
        name, entries = feed.entity.name, feed.entity.clusters
        sources = [("feed", name, entry.name) for entry in entries if entry.type == "source"]
        targets = [("feed", name, entry.name) for entry in entries if entry.type == "target"]
        graph.add_edges_from((source, target) for source in sources for target in targets)
    return graph


def _shortest_cycle(graph: nx.DiGraph[Node], process: Node) -> list[Node]:
    """From an input feed of the process, through it, and back to that feed."""
    paths = (nx.shortest_path(graph, process, feed) for feed in sorted(graph.predecessors(process)))
    path = min(paths, key=len)
    return [path[-1], *path]


def _problem(definitions: Definitions, cycle: list[Node]) -> Problem:
    _, first_feed, cluster = cycle[0]
    process = definitions.processes[cycle[1][1]]
    clusters = {node[2] for node in cycle}
    names = [name if len(clusters) == 1 else f"{name}@{where}" for _, name, where in cycle]
    index = next(index for index, declared in enumerate(process.entity.inputs) if declared.feed == first_feed)
    text = f"{' -> '.join(names)}" + (f" (on cluster {cluster!r})" if len(clusters) == 1 else "")
    return process.problem(("inputs", index, "feed"), f"dependency cycle: {text}")
