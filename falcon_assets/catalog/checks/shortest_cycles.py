"""Finds cycles in a graph of dependencies; apart from its check, because networkx takes 0.2 seconds to import."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import networkx as nx

from falcon_assets.catalog.checks.cycles import Node


def shortest_cycles(edges: Iterable[tuple[Node, Node]]) -> Iterator[list[Node]]:
    """For each process in a cycle a shortest one through it, unless one through it is given already, on any cluster.

    A cycle starts and ends with an input feed of that process.
    """
    graph = nx.DiGraph(edges)
    reported: set[str] = set()
    for component in nx.strongly_connected_components(graph):
        if len(component) == 1:
            continue
        inner = graph.subgraph(component)
        for node in sorted(node for node in component if node[0] == "process"):
            if node[1] not in reported:
                cycle = _shortest_cycle(inner, node)
                reported.update(name for kind, name, _ in cycle if kind == "process")
                yield cycle


def _shortest_cycle(graph: nx.DiGraph[Node], process: Node) -> list[Node]:
    """From an input feed of the process, through it, and back to that feed."""
    paths = (nx.shortest_path(graph, process, feed) for feed in sorted(graph.predecessors(process)))
    path = min(paths, key=len)
    return [path[-1], *path]
