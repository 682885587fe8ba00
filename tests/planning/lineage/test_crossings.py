"""Ways through places of no feed: who wrote there before somebody read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from falcon_assets.features.lineage.graph import Edge, Graph
from falcon_assets.features.lineage.places import (
    WITH,
    Crossing,
    Touch,
    above_through,
    crossings,
    edges_through,
    places_crossed,
    reached_through,
)
from falcon_assets.history.events.data_version import Version
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.version_columns import VersionStatus
from tests.hours import HOUR

T = parse_instant("2013-01-01T00:00Z")
RAW, MADE, READ, NEXT = range(1, 5)
MADE_FROM = {RAW: {MADE}, READ: {NEXT}}


def touch(number: int, hours: int, **more: tuple[str, ...]) -> Touch:
    return Touch(number, (f"process-{number}", T, "run"), T + hours * HOUR, **more)


WROTE = touch(MADE, 1, written=("/aside",))
SAW = touch(READ, 2, read=("/aside",))


@pytest.mark.parametrize(
    ("written", "read", "is_same"),
    [
        ("/aside", "/aside", True),
        ("/aside", "/aside/day=1", True),
        ("/aside/day=1", "/aside", True),
        ("s3://bucket/aside", "s3://bucket/aside/day=1/hour=2", True),
        ("/aside", "/aside-2", False),
        ("/aside-2", "/aside", False),
        ("... and 3 more like that", "... and 3 more like that", False),
    ],
)
def test_what_lies_in_what_was_written_was_written(written: str, read: str, is_same: bool) -> None:
    found = list(crossings([replace(WROTE, written=(written,))], [replace(SAW, read=(read,))]))
    assert found == ([Crossing(READ, MADE, written)] if is_same else [])


def test_what_is_written_later_was_not_read() -> None:
    assert not list(crossings([replace(WROTE, at=T + 3 * HOUR)], [SAW]))


def test_an_instance_was_not_made_from_what_it_wrote_itself() -> None:
    assert not list(crossings([replace(WROTE, made=SAW.made)], [SAW]))
    earlier = replace(WROTE, number=9, at=T)
    assert list(crossings([earlier, WROTE], [SAW])) == [Crossing(READ, 9, "/aside")]


def below(numbers: Collection[int], *, is_step: bool = False) -> set[int]:
    found = set(numbers)
    while (more := found | {to for one in found for to in MADE_FROM.get(one, ())}) != found and not is_step:
        found = more
    return more


@pytest.mark.parametrize(
    ("depth", "found"),
    [(None, {RAW, MADE, READ, NEXT}), (1, {RAW, MADE}), (2, {RAW, MADE, READ}), (3, {RAW, MADE, READ, NEXT})],
)
def test_descendants_go_on_behind_a_place(depth: int | None, found: set[int]) -> None:
    touches = [WROTE]
    reached, crossed = reached_through(
        {RAW},
        lambda those: below(those, is_step=depth is not None),
        lambda those: [one for one in touches if one.number in those],
        lambda: [SAW],
        depth,
    )
    assert reached == found
    assert crossed == ([Crossing(READ, MADE, "/aside")] if READ in found else [])


def test_who_reads_what_others_wrote_is_asked_for_only_where_somebody_wrote() -> None:
    def nobody() -> list[Touch]:
        raise AssertionError("all readers are asked for")

    assert reached_through({RAW}, below, lambda _: [], nobody, None) == ({RAW, MADE}, [])


def version(number: int, feed: str, process: str | None = None) -> Version:
    return Version(
        "primary", feed, T, "a", number=number, status=VersionStatus.AVAILABLE, process=process, run_id="run"
    )


VERSIONS = {
    one.number: one for one in (version(RAW, "raw"), version(MADE, "made", "add-up"), version(READ, "read", "look"))
}
GRAPH = Graph(VERSIONS, [Edge(MADE, RAW, "add-up", "run", 1, True)])
CROSSED = [Crossing(READ, MADE, "/aside")]


@pytest.mark.parametrize(
    ("start", "source", "places"),
    [
        pytest.param(RAW, RAW, [("place:/aside", "look")], id="from what the writer was made from"),
        pytest.param(MADE, MADE, [("place:/aside", "look"), ("primary/made/2013-01-01T00:00Z@a", WITH)], id="itself"),
    ],
)
def test_edges_past_places_and_to_them(start: int, source: int, places: list[tuple[str, str]]) -> None:
    (edge,) = edges_through(GRAPH, CROSSED, start)
    assert (edge.output, edge.input, edge.process, edge.declared) == (READ, source, "look", False)
    told = [one.as_edge() for one in places_crossed(GRAPH, CROSSED, start)]
    assert sorted((one["from"], one.get("relation") or one["process"]) for one in told) == places


def test_a_place_behind_a_place_comes_from_what_came_to_the_first() -> None:
    known = Graph({**VERSIONS, NEXT: version(NEXT, "next", "look-again")}, GRAPH.edges)
    through = edges_through(known, [*CROSSED, Crossing(NEXT, READ, "/beside")], RAW)
    assert [(one.output, one.input) for one in through] == [(READ, RAW), (NEXT, RAW)]


def test_versions_that_may_not_be_read_have_no_edges() -> None:
    hidden = GRAPH.among({RAW, MADE})
    assert not edges_through(hidden, CROSSED, RAW)
    assert not places_crossed(hidden, CROSSED, RAW)


def test_ancestors_behind_places_are_between_two_versions() -> None:
    made_from = {MADE: {RAW}, NEXT: {READ}}

    def above(numbers: Collection[int]) -> set[int]:
        return {*numbers, *(source for one in numbers for source in made_from.get(one, ()))}

    assert above_through(NEXT, above, CROSSED) == {NEXT, READ, MADE, RAW}
