"""What critical versions protect, against a search for a way from each critical version to each other one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.features.lineage.pruning_rules import protected
from tests.properties import examples

NUMBERS = st.integers(0, 9)


def distance(edges: set[tuple[int, int]], start: int, end: int) -> int | None:
    """How many edges lie between the two at least; None: there is no way."""
    reached, steps = {start}, 0
    while end not in reached:
        more = reached | {read for output, read in edges if output in reached}
        if more == reached:
            return None
        reached, steps = more, steps + 1
    return steps


@examples(300)
@given(st.sets(NUMBERS), st.sets(st.tuples(NUMBERS, NUMBERS), max_size=25))
def test_what_was_not_needed_for_a_critical_version_is_not_protected(
    critical: set[int], edges: set[tuple[int, int]]
) -> None:
    found = protected(critical, edges)
    for number in range(10):
        ways = {one: far for one in critical if (far := distance(edges, one, number)) is not None}
        nearest = min(ways, key=lambda one: (ways[one], one)) if ways else None
        assert found.get(number) == nearest


def test_a_critical_version_stays_for_itself() -> None:
    assert protected([2, 1], [(1, 2), (2, 3), (3, 1)]) == {1: 1, 2: 2, 3: 2}
