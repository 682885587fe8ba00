"""Pauses: nobody times out while nobody looks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.instances.rules.looks import Looks
from tests.hours import HOUR, START
from tests.properties import examples


def looked(*hours: float, timeout: float = 3) -> Looks:
    looks = Looks()
    for hour in hours:
        looks = looks.and_at(START + hour * HOUR, timeout * HOUR)
    return looks


def test_the_first_look_is_the_first_chance_of_all_that_was_due_before() -> None:
    looks = looked(5)
    assert looks.first_since(START) == looks.first_since(START + 5 * HOUR) == START + 5 * HOUR
    assert looks.first_since(START + 6 * HOUR) == START + 6 * HOUR


def test_what_came_up_in_a_pause_has_its_first_chance_at_its_end_and_nothing_else() -> None:
    looks = looked(0, 1, 25, 26)
    assert looks.first_since(START + HOUR) == START + HOUR
    assert looks.first_since(START + 2 * HOUR) == looks.first_since(START + 25 * HOUR) == START + 25 * HOUR


def test_shorter_gaps_are_none() -> None:
    assert looked(0, 2.9).first_since(START + HOUR) == START + HOUR


def test_a_clock_that_was_set_back_has_no_looks_in_the_future() -> None:
    assert looked(0, 24, 5) == Looks(START + 5 * HOUR, None, START)


@given(gaps=st.lists(st.integers(1, 40), min_size=1, max_size=30), due=st.integers(-5, 200), timeout=st.integers(2, 12))
@examples(300)
def test_of_looks_of_any_kind_it_tells_whether_an_instance_has_waited(gaps: list[int], due: int, timeout: int) -> None:
    """The last pause is all that has to be remembered: against all looks, gone through one by one."""
    times = [sum(gaps[: at + 1]) for at in range(len(gaps))]
    later = [time for time in times if time >= due]
    if not later:
        return
    before = max((time for time in times if time < due), default=None)
    first = later[0] if before is None or later[0] - before >= timeout else due
    found = looked(*times, timeout=timeout).first_since(START + due * HOUR)
    has_waited = times[-1] >= first + timeout
    assert (START + times[-1] * HOUR >= found + timeout * HOUR) == has_waited
