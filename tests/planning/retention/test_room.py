"""How much has to go from a disk that is too full, and what goes first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.planning.eviction import Space, first_to_go
from tests.properties import examples

BYTES = st.integers(0, 10**15)
T = datetime(2013, 1, 1, tzinfo=UTC)


@given(BYTES, BYTES, st.integers(1, 99))
@examples(300)
def test_the_excess_is_the_least_after_which_the_disk_is_full_enough(used: int, free: int, limit: int) -> None:
    excess = Space(used, free).excess(limit)
    assert 100 * (used - excess) <= limit * (used + free)
    assert excess == 0 or 100 * (used - excess + 1) > limit * (used + free)
    assert Space(used - excess, free + excess).excess(limit) == 0


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 100)), max_size=30), st.integers(-5, 2000))
@examples(300)
def test_the_oldest_go_and_no_more_than_needed(found: list[tuple[int, int]], excess: int) -> None:
    measured = []

    def size(one: tuple[int, int]) -> int:
        measured.append(one)
        return one[1]

    going = first_to_go(found, excess, lambda one: T + timedelta(hours=one[0]), size)
    rest = list(found)
    for one in going:
        rest.remove(one)
    total = sum(size for _, size in going)
    assert measured == going
    assert total >= excess or not rest
    assert not going or total - going[-1][1] < excess  # without the last it would not be enough
    assert all(gone[0] <= stays[0] for gone in going for stays in rest)


def test_a_disk_without_size_is_not_full() -> None:
    assert (Space(0, 0).percent, Space(0, 0).excess(1)) == (0, 0)
    assert Space(851, 149).percent == 86  # as df says it
