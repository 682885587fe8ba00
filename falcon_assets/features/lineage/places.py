"""Places outside of feeds, which runs read or wrote undeclared, and dependencies of versions through them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Any

from falcon_assets.features.lineage.graph import Edge, Graph
from falcon_assets.history.events.data_version import Version
from falcon_assets.planning.data_usage import is_rest

WITH = "written-with"
"""The relation of a place to the version that the same run made, where the inputs of the place are not known."""


@dataclass(frozen=True, order=True)
class PlaceEdge:
    """An edge from or to an undeclared place: a folder, a file or a table, as Spark names it.

    Attributes:
        source: The id of the input.
        target: The id of the output; either this or ``source`` is :func:`place_id` of the place.
        version: The number of the version whose run it was.
        is_relation: Whether it says only that the same run wrote both.
    """

    source: str
    target: str
    place: str
    process: str
    run: str | None
    definition: int | None
    version: int
    is_written: bool = False
    is_relation: bool = False

    def as_node(self) -> dict[str, Any]:
        return {"id": place_id(self.place), "kind": "place", "name": self.place}

    def as_edge(self) -> dict[str, Any]:
        ends = {"from": self.source, "to": self.target}
        if self.is_relation:
            return {**ends, "relation": WITH}
        return {**ends, "process": self.process, "run": self.run, "definition": self.definition, "declared": False}


def place_id(place: str) -> str:
    """Differs from the id of any version."""
    return f"place:{place}"


def places_read(versions: Iterable[Version]) -> list[PlaceEdge]:
    found = (_edge(one, place, place_id(place), one.id) for one in versions for place in one.places)
    return sorted(found, key=lambda one: (one.place, one.target))


def places_written(graph: Graph, start: int | None = None) -> list[PlaceEdge]:
    """Returns the edges from the inputs of runs, or else their versions, to places; without the writes of ``start``."""
    writing = {number: one for number, one in graph.versions.items() if one.writes and number != start}
    read: dict[int, list[str]] = {}
    for edge in graph.edges:
        if edge.output in writing and edge.run == writing[edge.output].run_id:
            read.setdefault(edge.output, []).append(graph.versions[edge.input].id)
    found = {edge for number, one in writing.items() for edge in _written(one, read.get(number, []), start is None)}
    return sorted(_unlike(found), key=lambda one: (one.place, one.source, one.is_relation))


def of_versions(edges: Iterable[PlaceEdge], wanted: Callable[[PlaceEdge], bool]) -> Mapping[int, list[str]]:
    found: dict[int, dict[str, None]] = {}
    for one in filter(wanted, edges):
        found.setdefault(one.version, {})[one.place] = None
    return {number: list(places) for number, places in found.items()}


def _written(one: Version, read: list[str], has_places: bool) -> Iterator[PlaceEdge]:
    sources = [*read, *(place_id(place) for place in one.places if has_places)]
    for place in one.writes:
        target = place_id(place)
        if not (made_from := [source for source in sources if source != target]):
            yield _edge(one, place, one.id, target, is_written=True, is_relation=True)
        for source in made_from:
            yield _edge(one, place, source, target, is_written=True)


def _unlike(edges: Iterable[PlaceEdge]) -> list[PlaceEdge]:
    """Removes edges that differ only by the version: a run makes several."""
    first: dict[tuple[Any, ...], PlaceEdge] = {}
    for one in sorted(edges, key=lambda one: one.version):
        first.setdefault((one.source, one.target, one.process, one.run, one.is_relation), one)
    return list(first.values())


def _edge(one: Version, place: str, source: str, target: str, **more: Any) -> PlaceEdge:
    return PlaceEdge(source, target, place, one.process or "", one.run_id, one.definition, one.number, **more)


@dataclass(frozen=True)
class Touch:
    """The undeclared reads and writes of a run; ``made``: it does not read what it has yet to write."""

    number: int
    made: tuple[str | None, datetime | None, str | None]
    at: datetime
    read: tuple[str, ...] = ()
    written: tuple[str, ...] = ()


@dataclass(frozen=True)
class Crossing:
    """An input through a place; ``writer`` is the first that wrote there, as later replacements are not known."""

    reader: int
    writer: int
    place: str


def crossings(writers: Iterable[Touch], readers: Iterable[Touch]) -> Iterator[Crossing]:
    """Yields the versions made after a place that they read was written: itself, a path inside it, or one around it."""
    by_place: dict[str, list[Touch]] = {}
    for one in sorted(writers, key=lambda one: (one.at, one.number)):
        for place in filter(_is_place, one.written):
            by_place.setdefault(place, []).append(one)
    places = sorted(by_place)
    for reader in readers:
        for place in _touched(filter(_is_place, reader.read), by_place, places):
            for one in by_place[place]:
                if one.at <= reader.at and one.made != reader.made:
                    yield Crossing(reader.number, one.number, place)
                    break


def _is_place(said: str) -> bool:
    return not is_rest(said)


def _touched(read: Iterable[str], written: Collection[str], in_order: Sequence[str]) -> list[str]:
    found = dict[str, None]()
    for place in read:
        above = place
        while above:
            found |= {above: None} if above in written else {}
            above = above.rpartition("/")[0]
        inside = in_order[bisect_left(in_order, f"{place}/") :]
        found |= dict.fromkeys(takewhile(lambda one: one.startswith(f"{place}/"), inside))  # noqa: B023 - used at once
    return list(found)


def reached_through(
    starts: Collection[int],
    below: Callable[[Collection[int]], set[int]],
    writers: Callable[[Collection[int]], Sequence[Touch]],
    readers: Callable[[], Sequence[Touch]],
    depth: int | None,
) -> tuple[set[int], list[Crossing]]:
    """Returns all made from ``starts``, also through places; ``below`` takes one step where there is a ``depth``."""
    found, waiting, crossed = set(starts), set(starts), dict[tuple[int, str], Crossing]()
    if depth is None:
        found = waiting = below(waiting)
    every: Sequence[Touch] | None = None
    while waiting and (depth is None or depth > 0):
        wrote = writers(waiting)
        every = readers() if wrote and every is None else every
        new = list(crossings(wrote, every or ()))
        for one in new:
            crossed.setdefault((one.reader, one.place), one)
        after = {one.reader for one in new} - found
        nearest = below(after) if depth is None else below(waiting) | after
        waiting = nearest - found
        found |= waiting
        depth = None if depth is None else depth - 1
    return found, list(crossed.values())


def above_through(number: int, above: Callable[[Collection[int]], set[int]], crossed: Iterable[Crossing]) -> set[int]:
    writers: dict[int, set[int]] = {}
    for one in crossed:
        writers.setdefault(one.reader, set()).add(one.writer)
    found = waiting = above([number])
    while waiting:
        waiting = above({writer for one in waiting for writer in writers.get(one, ())}) - found
        found |= waiting
    return found


def edges_through(graph: Graph, crossed: Iterable[Crossing], start: int) -> list[Edge]:
    """Returns edges that skip the places, from the inputs of writers; ``crossed`` must be in the order of finding."""
    read: dict[int, list[int]] = {}
    for edge in graph.edges:
        read.setdefault(edge.output, []).append(edge.input)
    known = {(one.output, one.input) for one in graph.edges}
    found: dict[tuple[int, int], Edge] = {}
    for one in crossed:
        if one.reader in graph.versions:
            made = graph.versions[one.reader]
            for source in [one.writer] if one.writer == start else [*read.get(one.writer, ())]:
                if (pair := (one.reader, source)) not in known and one.reader != source:
                    found[pair] = Edge(*pair, made.process or "", made.run_id, made.definition, declared=False)
                    read.setdefault(one.reader, []).append(source)
    return list(found.values())


def places_crossed(graph: Graph, crossed: Iterable[Crossing], start: int) -> list[PlaceEdge]:
    found = set[PlaceEdge]()
    versions: Mapping[int, object] = graph.versions
    for one in crossed:
        if one.reader in versions:
            made, place = graph.versions[one.reader], place_id(one.place)
            details = (one.place, made.process or "", made.run_id, made.definition, made.number)
            found.add(PlaceEdge(place, made.id, *details))
            if one.writer == start:
                wrote = graph.versions[start]
                details = (one.place, wrote.process or "", wrote.run_id, wrote.definition, start)
                found.add(PlaceEdge(wrote.id, place, *details, is_written=True, is_relation=True))
    return sorted(found, key=lambda one: (one.place, one.target))
