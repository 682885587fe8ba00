"""Where versions stand in a drawing: what was made from something stands to the right of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.planning.lineage.graph import Graph
from falcon_assets.planning.lineage.layout import layout
from tests.planning.lineage.test_graph import graph

PAIRS = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), max_size=30).map(set)


@given(PAIRS)
def test_inputs_stand_left_of_what_was_made_from_them(pairs: set[tuple[int, int]]) -> None:
    acyclic = graph(*((output, read) for output, read in pairs if output > read))
    places = layout(acyclic)
    assert places.keys() == acyclic.versions.keys()
    assert all(places[edge.input][0] < places[edge.output][0] for edge in acyclic.edges)


@given(PAIRS)
def test_no_two_share_a_place_in_circles_neither(pairs: set[tuple[int, int]]) -> None:
    any_graph = graph(*((output, read) for output, read in pairs if output != read))
    assert len(set(layout(any_graph).values())) == len(any_graph.versions)


def test_what_was_made_from_nothing_stands_beside_what_is_made_from_it() -> None:
    places = layout(graph((3, 2), (2, 1), (3, 4)))
    assert [places[number][0] for number in (1, 2, 4, 3)] == [0, 1, 1, 2]


def test_edges_do_not_cross_without_need() -> None:
    crossing = graph((11, 2), (12, 1), (13, 3))
    places = layout(crossing)
    assert [places[number][1] - places[made][1] for number, made in ((2, 11), (1, 12), (3, 13))] == [0, 0, 0]


def test_an_empty_graph() -> None:
    assert layout(Graph({}, [])) == {}
