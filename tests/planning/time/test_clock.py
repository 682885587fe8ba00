from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.errors import ExpressionError
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.clock import APART, Clock, is_set_back

STARTED = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "after_ten_minutes"),
    [
        (None, "2026-01-01T12:10Z"),
        ("", "2026-01-01T12:10Z"),
        ("  ", "2026-01-01T12:10Z"),
        ("2013-01-03T06:00Z", "2013-01-03T06:00Z"),
        ("2013-01-03T06:00Z@60x", "2013-01-03T16:00Z"),
        (" 2013-01-03T06:00Z@0.5x ", "2013-01-03T06:05Z"),
    ],
    ids=["none", "empty", "blank", "frozen", "fast", "slow"],
)
def test_clocks(text, after_ten_minutes):
    clock = Clock.parse(text, STARTED)
    assert format_instant(clock.at(STARTED + timedelta(minutes=10))) == after_ten_minutes


@pytest.mark.parametrize(
    "text", ["now", "2013-01-03", "2013-01-03T06:00Z@", "2013-01-03T06:00Z@60", "2013-01-03T06:00Z@0x", "@60x",
             "2013-01-03T06:00Z@-1x", "2013-01-03T06:00Z@60x@60x", "2013-02-30T06:00Z"]
)  # fmt: skip
def test_anything_else_is_refused(text):
    with pytest.raises(ExpressionError) as caught:
        Clock.parse(text, STARTED)
    assert str(caught.value) == (
        f"{text!r} is not a clock: leave it out for the real one, or write 2013-01-03T06:00Z (frozen) or "
        "2013-01-03T06:00Z@60x (starts there, 60 times as fast)"
    )


MOMENTS = st.datetimes(timezones=st.just(UTC))
CLOCKS = st.one_of(
    st.builds(Clock),
    st.builds(Clock, MOMENTS),
    st.builds(Clock, MOMENTS, MOMENTS, st.floats(min_value=1e-9, max_value=1e20)),
)


@given(CLOCKS)
def test_a_tag_is_read_back_exactly(clock):
    assert Clock.from_tag(clock.tag) == clock


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        (None, ""),
        ("2013-01-03T06:00Z", "2013-01-03T06:00:00Z"),
        ("2013-01-03T06:00Z@60x", "2013-01-03T06:00:00Z@60x since 2026-01-01T12:00:00Z"),
        ("2013-01-03T06:00Z@0.5x", "2013-01-03T06:00:00Z@0.5x since 2026-01-01T12:00:00Z"),
    ],
    ids=["real", "frozen", "fast", "slow"],
)
def test_tags(text, tag):
    clock = Clock.parse(text, STARTED)
    assert clock.tag == tag
    assert clock.runs == ("x" in tag)


@pytest.mark.parametrize(
    "tag",
    ["now", "2013-01-03T06:00:00", "2013-01-03T06:00:00Z@60x", "2013-01-03T06:00:00Z@x since 2026-01-01T12:00:00Z",
     "2013-01-03T06:00:00Z@-1x since 2026-01-01T12:00:00Z", "2013-01-03T06:00:00Z@1.2.3x since 2026-01-01T12:00:00Z",
     "2013-02-30T06:00:00Z"],
)  # fmt: skip
def test_what_is_no_tag_is_refused(tag):
    with pytest.raises(ExpressionError) as caught:
        Clock.from_tag(tag)
    assert str(caught.value) == (
        f"{tag!r} is not the tag of a clock: 2013-01-03T06:00:00Z@60x since 2026-01-01T12:00:00Z"
    )


def test_a_clock_that_ran_too_far_says_so():
    clock = Clock.parse("2013-01-03T06:00Z@999999x", STARTED)
    with pytest.raises(ExpressionError) as caught:
        clock.at(STARTED + timedelta(days=10))
    assert str(caught.value) == (
        "the clock 2013-01-03T06:00:00Z@999999x since 2026-01-01T12:00:00Z has left the years 1 to 9999: start it anew"
    )


def test_clocks_of_two_machines_differ_a_little_and_that_is_not_set_back():
    assert not is_set_back(STARTED, STARTED)
    assert not is_set_back(STARTED + APART, STARTED)
    assert is_set_back(STARTED + APART + timedelta(seconds=1), STARTED)
    assert not is_set_back(STARTED, STARTED + timedelta(days=1))
