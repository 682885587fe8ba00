"""Places outside of feeds, which runs read or wrote undeclared: nodes beside those of versions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from falcon_assets.features.lineage.graph import Graph
from falcon_assets.history.events.data_version import Version

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
