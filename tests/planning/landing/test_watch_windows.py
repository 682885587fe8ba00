from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.features.landing.rules import horizon_of, missing_windows, watch_window
from falcon_assets.model.frequency import Frequency
from falcon_assets.planning.timeline import Timeline
from tests.builders import make_feed
from tests.hours import START
from tests.properties import examples

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
HOURLY = Timeline(START, datetime(2099, 1, 1, tzinfo=UTC), Frequency.parse("hours(1)"), "UTC")
timelines = st.builds(
    lambda days, frequency, zone: Timeline(START, START + timedelta(days=days), Frequency.parse(frequency), zone),
    st.integers(1, 400),
    st.sampled_from(["minutes(45)", "hours(1)", "hours(5)", "days(1)", "days(7)", "months(1)"]),
    st.sampled_from(["UTC", "America/New_York", "Australia/Lord_Howe"]),
)
horizons = st.integers(1, 200).map(lambda hours: hours * HOUR)


def at(hours: float) -> datetime:
    return START + hours * HOUR


@pytest.mark.parametrize(
    ("now", "looked_at", "window"),
    [
        pytest.param(at(1000), at(999), (at(976), at(1000)), id="what got a day old in this tick, too"),
        pytest.param(at(1000.5), at(1000.25), (at(977), at(1000)), id="between two instances"),
        pytest.param(at(1000.5), None, (START, at(1000)), id="the first look is at everything"),
        pytest.param(at(1000), at(900), (at(877), at(1000)), id="after a pause nothing of it is left out"),
        pytest.param(at(20), at(19), (START, at(20)), id="younger than the horizon"),
        pytest.param(at(50), at(80), (at(26), at(50)), id="the clock was put back"),
        pytest.param(at(50), at(50), (at(26), at(50)), id="twice at the same time"),
        pytest.param(at(-1), None, None, id="before the first instance, first look"),
        pytest.param(at(-1), at(-2), None, id="before the first instance"),
    ],
)
def test_the_window_of_a_tick(
    now: datetime, looked_at: datetime | None, window: tuple[datetime, datetime] | None
) -> None:
    assert watch_window(HOURLY, now, looked_at, DAY) == window


@pytest.mark.parametrize(
    "timeline",
    [
        pytest.param(Timeline(START, START, HOURLY.frequency, "UTC"), id="empty validity"),
        pytest.param(Timeline(START, at(3), HOURLY.frequency, "UTC"), id="ended long ago"),
    ],
)
def test_no_instance_no_window(timeline: Timeline) -> None:
    assert watch_window(timeline, at(33), at(32), DAY) is None


def test_the_ends_of_the_calendar() -> None:
    ages = Timeline(datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC), HOURLY.frequency, "UTC")
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert watch_window(ages, now, now - HOUR, timedelta.max) == (ages.start, now)
    assert watch_window(ages, now, datetime.min.replace(tzinfo=UTC), timedelta.max) == (ages.start, now)


@given(data=st.data(), timeline=timelines, horizon=horizons)
@examples(200)
def test_what_is_young_at_a_tick_or_came_up_since_the_last_one_is_searched_for(
    data: st.DataObject, timeline: Timeline, horizon: timedelta
) -> None:
    now = START + timedelta(minutes=data.draw(st.integers(0, 2_000_000)))
    looked_at = now - timedelta(minutes=data.draw(st.integers(1, 50_000)))
    window = watch_window(timeline, now, looked_at, horizon)
    looked_for = set(timeline.between(*window)) if window else set()
    assert looked_for == {one for one in timeline.until(now) if one > looked_at - horizon}
    assert not window or (timeline.contains(window[0]) and timeline.contains(window[1]))


def test_a_tick_costs_the_same_whatever_the_history() -> None:
    for years in (1, 10, 80):
        now = START + years * timedelta(days=365)
        window = watch_window(HOURLY, now, now - HOUR, DAY)
        assert window
        assert len(HOURLY.indexes(*window)) == 25


@given(data=st.data(), timeline=timelines)
@examples(200)
def test_the_windows_of_what_is_missing(data: st.DataObject, timeline: Timeline) -> None:
    first, last = (START + timedelta(minutes=data.draw(st.integers(-3000, 600_000))) for _ in range(2))
    asked = timeline.between(first, last)
    known = set(data.draw(st.lists(st.sampled_from(asked), max_size=200))) if asked else set()
    windows = list(missing_windows(timeline, first, last, known))
    looked_for = {one for window in windows for one in timeline.between(*window)}
    assert set(asked) - known <= looked_for <= set(asked)
    assert all(end not in known for window in windows for end in window)
    assert all(before[1] < after[0] for before, after in pairwise(windows))


def test_windows_that_are_a_day_apart_are_two() -> None:
    known = set(HOURLY.between(at(1), at(25))) | set(HOURLY.between(at(40), at(62)))
    assert list(missing_windows(HOURLY, START, at(70), known)) == [(START, START), (at(26), at(70))]
    assert list(missing_windows(HOURLY, START, at(70), set(HOURLY.until(at(70))))) == []


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
