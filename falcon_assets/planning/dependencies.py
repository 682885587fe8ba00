"""The graph of feeds and processes on clusters, and the edges that Dagster's graph cannot show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import TypeAlias

from falcon_assets.model.expression_functions import Kind
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Input, Output, Process
from falcon_assets.planning.expressions import expression_bounds

Node: TypeAlias = tuple[str, str, str]
Edge: TypeAlias = tuple[Node, Node]
"""From the feed or process that is read or copied, to the one that uses it; nodes are kind, name and cluster."""


def own_feeds(inputs: Iterable[Input], outputs: Iterable[Output]) -> frozenset[str]:
    return frozenset(one.feed for one in inputs) & {one.feed for one in outputs}


def dependencies(processes: Iterable[Process], feeds: Iterable[Feed]) -> Iterator[Edge]:
    for process in processes:
        own = own_feeds(process.inputs, process.outputs)
        for entry in process.clusters:
            node = ("process", process.name, entry.name)
            yield from ((("feed", one.feed, entry.name), node) for one in process.inputs if one.feed not in own)
            yield from ((node, ("feed", one.feed, entry.name)) for one in process.outputs)
    for feed in feeds:
        sources = [("feed", feed.name, entry.name) for entry in feed.clusters if entry.type == "source"]
        targets = [("feed", feed.name, entry.name) for entry in feed.clusters if entry.type == "target"]
        yield from ((source, target) for source in sources for target in targets)


def find_cycle(edges: Iterable[Edge]) -> list[Node] | None:
    sorter: TopologicalSorter[Node] = TopologicalSorter()
    for before, after in edges:
        sorter.add(after, before)
    try:
        sorter.prepare()
    except CycleError as error:
        return list(error.args[1])
    return None


def left_out(processes: Iterable[Process], feeds: Iterable[Feed]) -> frozenset[Edge]:
    """Reads to leave out so that no cycle of different assets is left, which Dagster cannot show.

    Of the reads in a cycle, the one that looks back farthest: the others are those that a person expects.
    """
    by_name = {process.name: process for process in processes}
    edges, gone = list(dict.fromkeys(dependencies(by_name.values(), feeds))), set[Edge]()
    while cycle := find_cycle(edges):
        reads = [edge for edge in pairwise(cycle) if edge[1][0] == "process"]
        gone.add(min(reads, key=lambda edge: (_looks_ahead(by_name[edge[1][1]], edge[0][1]), edge)))
        edges = [edge for edge in edges if edge not in gone]
    return frozenset(gone)


def _looks_ahead(process: Process, feed: str) -> timedelta:
    ends = [one.end.call for one in process.inputs if one.feed == feed]
    return max(sum(expression_bounds(end), timedelta()) / 2 if end.kind is Kind.TIME else timedelta() for end in ends)
