"""What has to stay so that versions can be made again: a naive oracle makes them from what stays, and from no less."""

from __future__ import annotations

from collections.abc import Set

from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.features.lineage.pruning_rules import needed_to_make
from tests.properties import examples

NUMBERS = range(9)
SOME = st.sets(st.sampled_from(NUMBERS))
EDGES = st.sets(st.tuples(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS)), max_size=16)


def can_be_made(number: int, edges: Set[tuple[int, int]], makeable: Set[int], there: Set[int]) -> bool:
    """By trying: each round makes what it can from what is there, until nothing is new."""
    made: set[int] = set()
    for _ in NUMBERS:
        known = made | there
        made |= {one for one in makeable if {read for output, read in edges if output == one} <= known}
    return number in made


@examples(500)
@given(SOME, EDGES, SOME, SOME, SOME)
def test_what_stays_is_enough(
    wanted: set[int], edges: set[tuple[int, int]], makeable: set[int], existing: set[int], staying: set[int]
) -> None:
    found = needed_to_make(wanted, edges, makeable, existing, staying)
    assert found.stays <= existing
    assert found.impossible == {one for one in wanted if not can_be_made(one, edges, makeable, existing)}
    left = found.stays | (staying & existing)
    assert all(can_be_made(one, edges, makeable, left) for one in wanted - found.impossible)


@examples(500)
@given(SOME, EDGES, SOME, SOME, SOME)
def test_less_than_what_stays_is_not_enough(
    wanted: set[int], edges: set[tuple[int, int]], makeable: set[int], existing: set[int], staying: set[int]
) -> None:
    """Of what does not stay anyway, where nothing is made from itself."""
    forward = {(output, read) for output, read in edges if output > read}
    found = needed_to_make(wanted, forward, makeable, existing, staying)
    kept = found.stays | (staying & existing)
    for one in found.stays - staying:
        assert not all(can_be_made(other, forward, makeable, kept - {one}) for other in wanted - found.impossible), (
            f"{one} need not stay"
        )


def test_what_lies_between_is_made_again() -> None:
    """3 was made from 2, and that from 1."""
    edges = [(3, 2), (2, 1)]
    assert needed_to_make([3], edges, {2, 3}, {1, 2, 3}, ()).stays == {1}
    assert needed_to_make([3], edges, {2, 3}, {2, 3}, ()).stays == {2}  # 1 is gone
    assert needed_to_make([3], edges, {3}, {1, 2, 3}, ()).stays == {2}  # nobody knows how 2 was made
    assert needed_to_make([3], edges, {2, 3}, {1, 2, 3}, {2}).stays == {2}  # 2 stays anyway
    assert needed_to_make([3], edges, {2, 3}, {3}, ()).impossible == {3}
