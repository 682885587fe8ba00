"""Dependencies must not come back to where they started."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from falcon_assets.catalog.declared import Definitions
from falcon_assets.errors import Problem

Node = tuple[str, str, str]
"""Kind, name and cluster."""


def check_cycles(definitions: Definitions) -> Iterator[Problem]:
    """For each process in a cycle a shortest one through it, unless a cycle through it is reported already.

    A process that reads its own output is a cycle too, even where it reads earlier instances only.
    """
    edges = list(_dependencies(definitions))
    if _has_cycle(edges):
        # Every command looks for cycles and hardly one finds any: only that one imports networkx.
        from falcon_assets.catalog.checks.shortest_cycles import shortest_cycles  # noqa: PLC0415

        for cycle in shortest_cycles(edges):
            yield _problem(definitions, cycle)


def _dependencies(definitions: Definitions) -> Iterator[tuple[Node, Node]]:
    """What is read or copied, and who does or has it then."""
    for process in definitions.processes.values():
        for entry in process.entity.clusters:
            node = ("process", process.entity.name, entry.name)
            yield from ((("feed", declared.feed, entry.name), node) for declared in process.entity.inputs)
            yield from ((node, ("feed", output.feed, entry.name)) for output in process.entity.outputs)
    for feed in definitions.feeds.values():
        name, entries = feed.entity.name, feed.entity.clusters
        sources = [("feed", name, entry.name) for entry in entries if entry.type == "source"]
        targets = [("feed", name, entry.name) for entry in entries if entry.type == "target"]
        yield from ((source, target) for source in sources for target in targets)


def _has_cycle(edges: list[tuple[Node, Node]]) -> bool:
    sorter: TopologicalSorter[Node] = TopologicalSorter()
    for before, after in edges:
        sorter.add(after, before)
    try:
        sorter.prepare()
    except CycleError:
        return True
    return False


def _problem(definitions: Definitions, cycle: list[Node]) -> Problem:
    _, first_feed, cluster = cycle[0]
    process = definitions.processes[cycle[1][1]]
    clusters = {node[2] for node in cycle}
    names = [name if len(clusters) == 1 else f"{name}@{where}" for _, name, where in cycle]
    index = next(index for index, declared in enumerate(process.entity.inputs) if declared.feed == first_feed)
    text = f"{' -> '.join(names)}" + (f" (on cluster {cluster!r})" if len(clusters) == 1 else "")
    return process.problem(("inputs", index, "feed"), f"dependency cycle: {text}")
