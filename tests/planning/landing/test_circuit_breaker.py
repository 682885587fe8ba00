from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.features.landing.rules import FIRST_SECONDS, LONGEST_SECONDS, SLOW_SECONDS, Breaker


def test_a_slow_failure_opens_it_at_once() -> None:
    breaker = Breaker().failed(100, SLOW_SECONDS, "no answer")
    assert breaker.is_open(100)
    assert breaker.is_open(100 + FIRST_SECONDS - 1)
    assert not breaker.is_open(100 + FIRST_SECONDS)
    assert breaker.why == "no answer"


def test_of_quick_failures_it_takes_two_in_a_row() -> None:
    once = Breaker().failed(100, 0.1, "refused")
    assert not once.is_open(100)
    assert once.failed(101, 0.1, "refused").is_open(101)


def test_after_a_pause_one_failure_doubles_it() -> None:
    breaker, now, pauses = Breaker().failed(0, 9, "x"), 0.0, []
    for _ in range(8):
        assert breaker.until is not None
        pauses.append(breaker.until - now)
        now = breaker.until
        breaker = breaker.failed(now, 0.1, "x")
    assert pauses == [15, 30, 60, 120, 240, 300, 300, 300]


@given(st.lists(st.tuples(st.floats(0, 1000), st.floats(0, 60)), max_size=50))
def test_it_is_never_open_for_longer_than_that(failures: list[tuple[float, float]]) -> None:
    breaker, now = Breaker(), 0.0
    for pause, took in failures:
        now += pause + took
        breaker = breaker.failed(now, took, "x")
        assert not breaker.is_open(now + LONGEST_SECONDS)
