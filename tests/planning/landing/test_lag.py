from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.features.landing.rules import lag
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.timeline import Timeline, feed_timeline
from tests.builders import make_feed

START, END = "2013-01-01T00:00Z", "2013-03-01T00:00Z"
CLUSTERS = [{"name": "primary", "validity": {"start": START, "end": END}}]


def line(frequency: str, timezone: str = "UTC") -> Timeline:
    return feed_timeline(make_feed(frequency=frequency, timezone=timezone, clusters=CLUSTERS), "primary")


def time(text: str) -> datetime:
    return parse_instant(f"2013-{text}Z")


@pytest.mark.parametrize(
    ("newest", "now", "hours"),
    [
        pytest.param("01-01T05:00", "01-01T05:30", 0, id="the newest is there"),
        pytest.param("01-01T05:00", "01-01T06:00", 0, id="the next is due just now"),
        pytest.param("01-01T05:00", "01-01T08:30", 2.5, id="the next has been due"),
        pytest.param(None, "01-01T02:00", 2, id="nothing ever came"),
        pytest.param("02-28T23:00", "04-01T00:00", 0, id="complete"),
        pytest.param("02-28T22:00", "03-01T00:00", 1, id="the last one is not there"),
        pytest.param("01-02T00:00", "01-01T00:00", 0, id="the clock was set back"),
    ],
)
def test_lag(newest: str | None, now: str, hours: float) -> None:
    found = lag(line("hours(1)"), newest and time(newest), time(now), time(now))
    assert found == timedelta(hours=hours)


def test_before_the_validity() -> None:
    before = parse_instant("2012-01-01T00:00Z")
    assert lag(line("hours(1)"), None, before, before) == timedelta()


def test_what_is_not_due_yet_is_not_behind() -> None:
    newest, due, now = (time(f"01-01T{text}") for text in ("05:00", "05:50", "06:30"))
    assert lag(line("hours(1)"), newest, due, now) == timedelta()


@given(
    st.sampled_from(["minutes(45)", "hours(5)", "days(2)", "months(1)"]),
    st.sampled_from(["UTC", "Europe/Berlin"]),
    st.integers(0, 100 * 24 * 60),
    st.none() | st.integers(0, 100 * 24 * 60),
)
def test_it_is_the_age_of_the_first_missing_one(
    frequency: str, timezone: str, minutes: int, newest: int | None
) -> None:
    own, now = line(frequency, timezone), parse_instant(START) + timedelta(minutes=minutes)
    last = None if newest is None else own.at_or_before(parse_instant(START) + timedelta(minutes=newest))
    missing = [one for one in own.until(now) if last is None or one > last]
    assert lag(own, last, now, now) == (now - missing[0] if missing else timedelta())
