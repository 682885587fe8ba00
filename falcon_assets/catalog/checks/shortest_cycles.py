"""Finds cycles in a graph of dependencies; apart from its check, because networkx takes 0.2 seconds to import."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import networkx as nx

from falcon_assets.planning.instances.dependencies import Edge, Node


def cycles_by_length(edges: Iterable[Edge], most: int) -> list[list[Node]]:
    """Cycles, the shortest first, each from an input feed of its first process back to that feed.

    Where there are more than ``most``, it is the first of them that are found.
    """
    found = (_from_first_process(cycle) for cycle in islice(nx.simple_cycles(nx.DiGraph(edges)), most))
    return sorted(found, key=lambda cycle: (len(cycle), cycle))


def _from_first_process(cycle: list[Node]) -> list[Node]:
    """From an input feed of the process that comes first by its name, through it, and back to that feed."""
    first = cycle.index(min(node for node in cycle if node[0] == "process")) - 1
    turned = [*cycle[first:], *cycle[:first]] if first >= 0 else [cycle[-1], *cycle[:-1]]
    return [*turned, turned[0]]
