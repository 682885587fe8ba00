"""Where versions stand in a drawing: what was made from something stands to the right of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.planning.lineage.layout import layout

COUNT = 12
PAIRS = st.lists(st.tuples(st.integers(0, COUNT - 1), st.integers(0, COUNT - 1)), max_size=30).map(set)
IDS = [f"v{number:02}" for number in range(COUNT)]


@given(PAIRS)
def test_inputs_stand_left_of_what_was_made_from_them(pairs: set[tuple[int, int]]) -> None:
    acyclic = [(start, end) for start, end in pairs if start < end]
    places = layout(IDS, acyclic)
    assert len(places) == COUNT
    assert all(places[start][0] < places[end][0] for start, end in acyclic)


@given(PAIRS)
def test_no_two_share_a_place_in_circles_neither(pairs: set[tuple[int, int]]) -> None:
    assert len(set(layout(IDS, pairs))) == COUNT


def test_what_was_made_from_nothing_stands_beside_what_is_made_from_it() -> None:
    places = layout(["a", "b", "beside", "end"], [(0, 1), (1, 3), (2, 3)])
    assert [column for column, _ in places] == [0, 1, 1, 2]


def test_edges_do_not_cross_without_need() -> None:
    crossing = [(1, 3), (0, 4), (2, 5)]
    places = layout(IDS[:6], crossing)
    assert [places[start][1] - places[end][1] for start, end in crossing] == [0, 0, 0]


def test_an_empty_graph() -> None:
    assert layout([], []) == []
