from __future__ import annotations

from datetime import datetime, timedelta, timezone
from itertools import pairwise
from math import log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falcon_assets.model.frequency import Frequency
from falcon_assets.planning.timeline import Timeline
from falcon_assets.planning.watch import horizon_of, watch_windows
from tests.builders import make_feed

UTC = timezone.utc
START = datetime(2013, 1, 1, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
HOURLY = Timeline(START, datetime(2099, 1, 1, tzinfo=UTC), Frequency.parse("hours(1)"), "UTC")
timelines = st.builds(
    lambda days, frequency, zone: Timeline(START, START + timedelta(days=days), Frequency.parse(frequency), zone),
    st.integers(1, 400),
    st.sampled_from(["minutes(45)", "hours(1)", "hours(5)", "days(1)", "days(7)", "months(1)"]),
    st.sampled_from(["UTC", "America/New_York", "Australia/Lord_Howe"]),
)
horizons = st.integers(1, 200).map(lambda hours: hours * HOUR)


def watched(timeline: Timeline, now: datetime, looked_at: datetime | None, horizon: timedelta) -> list[list[datetime]]:
    return [timeline.between(*window) for window in watch_windows(timeline, now, looked_at, horizon)]


def at(hours: float) -> datetime:
    return START + hours * HOUR


def test_an_ordinary_tick_looks_at_the_horizon_and_at_what_gets_twice_as_old() -> None:
    windows = watch_windows(HOURLY, at(1000), at(999), DAY)
    assert windows == (
        (at(976), at(1000)),  # what got a day old in this tick, too
        (at(952), at(952)),
        (at(904), at(904)),
        (at(808), at(808)),
        (at(616), at(616)),
        (at(232), at(232)),
    )


def test_a_tick_between_two_instances_looks_at_the_horizon_only() -> None:
    assert watch_windows(HOURLY, at(1000.5), at(1000.25), DAY) == ((at(977), at(1000)),)


def test_the_first_look_is_at_everything() -> None:
    assert watch_windows(HOURLY, at(1000.5), None, DAY) == ((START, at(1000)),)


def test_after_a_pause_nothing_is_left_out() -> None:
    windows = watch_windows(HOURLY, at(1000), at(900), DAY)
    assert windows == ((at(709), at(1000)), (at(517), at(616)), (at(133), at(232)))
    assert watch_windows(HOURLY, at(1000), at(500), DAY) == ((START, at(1000)),)


@pytest.mark.parametrize(
    ("timeline", "now", "looked_at"),
    [
        pytest.param(HOURLY, at(-1), None, id="before the first instance, first look"),
        pytest.param(HOURLY, at(-1), at(-2), id="before the first instance"),
        pytest.param(Timeline(START, START, HOURLY.frequency, "UTC"), at(9), at(0), id="empty validity"),
        pytest.param(Timeline(START, at(3), HOURLY.frequency, "UTC"), at(33), at(32), id="ended long ago"),
    ],
)
def test_no_instance_no_window(timeline: Timeline, now: datetime, looked_at: datetime | None) -> None:
    assert watch_windows(timeline, now, looked_at, DAY) == ()


def test_a_clock_that_was_set_back_and_the_edges_of_time_do_no_harm() -> None:
    assert watch_windows(HOURLY, at(50), at(80), DAY) == watch_windows(HOURLY, at(50), at(50), DAY)
    assert watch_windows(HOURLY, at(50), at(50), DAY) == ((at(26), at(50)), (at(2), at(2)))
    ages = Timeline(
        datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC), Frequency.parse("hours(1)"), "UTC"
    )
    now = datetime(9999, 12, 30, tzinfo=UTC)
    assert len(watch_windows(ages, now, now - HOUR, DAY)) == 22
    assert watch_windows(ages, now, now - HOUR, timedelta.max) == ((ages.start, now),)
    assert watch_windows(ages, now, datetime.min.replace(tzinfo=UTC), timedelta.max) == ((ages.start, now),)


@given(data=st.data(), timeline=timelines, horizon=horizons)
@settings(max_examples=200)
def test_what_lands_is_found_before_it_is_twice_as_old_plus_a_tick(
    data: st.DataObject, timeline: Timeline, horizon: timedelta
) -> None:
    instance = timeline.instance(data.draw(st.integers(0, timeline.count - 1)))
    landed = instance + timedelta(minutes=data.draw(st.integers(-3000, 300_000)))
    tick = timedelta(minutes=data.draw(st.integers(1, 20_000)))
    looked_at = landed - timedelta(minutes=data.draw(st.integers(0, 20_000)))
    deadline = instance + 2 * max(landed - instance, timedelta())
    while True:
        now = max(looked_at + tick, landed)
        if any(instance in window for window in watched(timeline, now, looked_at, horizon)):
            break
        assert now < deadline
        looked_at = now
        tick = max(tick, (deadline - now) / 50)  # fewer ticks than 50 or so keep the test fast


@given(data=st.data(), timeline=timelines, horizon=horizons)
@settings(max_examples=200)
def test_windows_are_few_disjoint_and_existing(data: st.DataObject, timeline: Timeline, horizon: timedelta) -> None:
    now = START + timedelta(minutes=data.draw(st.integers(0, 2_000_000)))
    looked_at = now - timedelta(minutes=data.draw(st.integers(1, 50_000)))
    windows = watch_windows(timeline, now, looked_at, horizon)
    assert len(windows) <= 2 + max(0.0, log2(max((now - START) / horizon, 1)))
    assert all(timeline.contains(first) and timeline.contains(last) and first <= last for first, last in windows)
    assert all(older[1] < newer[0] for newer, older in pairwise(windows))
    looked_for = {one for window in windows for one in timeline.between(*window)}
    assert looked_for >= set(timeline.between(now - horizon, now))
    # Everything that got horizon * 2**k old, and nothing else.
    for one in timeline.until(now):
        before, after = (looked_at - one) / horizon, (now - one) / horizon
        k = max(0, int(log2(after))) if after >= 1 else 0
        assert (one in looked_for) == (after <= 1 or before < 2**k <= after)


def test_a_tick_costs_the_same_whatever_the_history() -> None:
    for years in (1, 10, 80):
        now = START + years * timedelta(days=365)
        windows = watch_windows(HOURLY, now, now - HOUR, DAY)
        assert sum(len(HOURLY.indexes(*window)) for window in windows) <= 25 + log2(years * 365)


@pytest.mark.parametrize(
    ("overrides", "timeouts", "expected"),
    [
        pytest.param({}, [], 24 * HOUR, id="a day at least"),
        pytest.param({"frequency": "days(1)"}, [], 24 * DAY, id="24 instances"),
        pytest.param({"late_arrival": {"cut_off": "days(3)"}}, [DAY], 3 * DAY, id="the late cut-off"),
        pytest.param({"late_arrival": {"cut_off": "days(3)"}}, [DAY, 5 * DAY], 5 * DAY, id="the longest timeout"),
        pytest.param({"frequency": "minutes(5)"}, [HOUR], 24 * HOUR, id="fine feeds too"),
    ],
)
def test_the_horizon(overrides: dict[str, object], timeouts: list[timedelta], expected: timedelta) -> None:
    assert horizon_of(make_feed(**overrides), timeouts) == expected
