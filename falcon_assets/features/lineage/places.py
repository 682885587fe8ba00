"""What of no feed versions were made from, and what their runs wrote besides: nodes beside those of versions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from falcon_assets.features.lineage.graph import Graph, Version

WITH = "written-with"
"""What a place has to do with a version whose run wrote it, where nothing is there that it was made from."""


@dataclass(frozen=True, order=True)
class PlaceEdge:
    """An edge from or to what lies at a place, which no process declares.

    Attributes:
        source: The id of what was read.
        target: The id of what was made from it; one of the two is :func:`place_id` of the place.
        place: A folder, a file or a table, as Spark names it.
        process: Which process read or wrote it.
        run: In which run; None: nobody knows.
        definition: With which version of the definition; None: not recorded.
        version: The number of the version whose run it was.
        is_written: Whether the run wrote it, else it read it.
        is_relation: Whether it only was written by the run that made the version, and not made from that.
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
        """The place in JSON."""
        return {"id": place_id(self.place), "kind": "place", "name": self.place}

    def as_edge(self) -> dict[str, Any]:
        """The edge in JSON."""
        ends = {"from": self.source, "to": self.target}
        if self.is_relation:
            return {**ends, "relation": WITH}
        return {**ends, "process": self.process, "run": self.run, "definition": self.definition, "declared": False}


def place_id(place: str) -> str:
    """The id of a place in graphs; unlike that of any version."""
    return f"place:{place}"


def places_read(versions: Iterable[Version]) -> list[PlaceEdge]:
    """From all of them that versions were made from, in the order of their names."""
    found = (_edge(one, place, place_id(place), one.id) for one in versions for place in one.places)
    return sorted(found, key=lambda one: (one.place, one.target))


def places_written(graph: Graph, start: int | None = None) -> list[PlaceEdge]:
    """To all of them that the runs wrote which made its versions, in the order of their names.

    They come from what the run read: from the versions that are in the graph, and from places. Where there is none of
    that, they have a relation to the version.

    Args:
        graph: It.
        start: From which version all was made, so that what its own run wrote was not; None: it has none.
    """
    writing = {number: one for number, one in graph.versions.items() if one.writes and number != start}
    read: dict[int, list[str]] = {}
    for edge in graph.edges:
        if edge.output in writing and edge.run == writing[edge.output].run_id:
            read.setdefault(edge.output, []).append(graph.versions[edge.input].id)
    found = {edge for number, one in writing.items() for edge in _written(one, read.get(number, []), start is None)}
    return sorted(_unlike(found), key=lambda one: (one.place, one.source, one.is_relation))


def of_versions(edges: Iterable[PlaceEdge], wanted: Callable[[PlaceEdge], bool]) -> Mapping[int, list[str]]:
    """By version, the places of those edges that are wanted, each once."""
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
    """They without those that differ by the version only: a run makes several."""
    first: dict[tuple[Any, ...], PlaceEdge] = {}
    for one in sorted(edges, key=lambda one: one.version):
        first.setdefault((one.source, one.target, one.process, one.run, one.is_relation), one)
    return list(first.values())


def _edge(one: Version, place: str, source: str, target: str, **more: Any) -> PlaceEdge:
    return PlaceEdge(source, target, place, one.process or "", one.run_id, one.definition, one.number, **more)
