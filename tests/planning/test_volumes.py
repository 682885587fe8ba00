"""Which volume gets a new instance."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.planning.volumes import roomiest
from tests.properties import examples


@given(st.lists(st.integers(0, 10**15), min_size=1, max_size=9))
@examples(200)
def test_the_first_of_those_with_the_most_free_space(free: list[int]) -> None:
    chosen = roomiest(free)
    assert free[chosen] == max(free)
    assert all(one < free[chosen] for one in free[:chosen])
