"""Which instances the data of a snapshot feed stands for, with any timeline and any history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.model.frequency import Frequency
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.snapshots import instances_to_record, not_refreshed, refresh_time, unrecorded_windows
from falcon_assets.planning.timeline import Timeline
from tests.hours import HOUR, START

HOURLY = Timeline(START, START + 48 * HOUR, Frequency.parse("hours(1)"), "UTC")
timelines = st.builds(
    lambda days, frequency, zone: Timeline(START, START + timedelta(days=days), Frequency.parse(frequency), zone),
    st.integers(1, 60),
    st.sampled_from(["hours(5)", "days(1)", "days(7)", "months(1)"]),
    st.sampled_from(["UTC", "America/New_York"]),
)
moments = st.integers(-200, 2000).map(lambda hours: START + hours * HOUR)
ALL = [(START, datetime(2014, 1, 1, tzinfo=UTC))]


def at(hours: float) -> datetime:
    return START + hours * HOUR


@given(timelines, moments)
def test_an_instance_is_there_where_it_was_refreshed_at_or_after_its_time(line: Timeline, refreshed: datetime) -> None:
    there = instances_to_record(line, ALL, {}, refreshed, "a")
    assert there == [one for one in line.until(ALL[0][1]) if refreshed >= one]


@given(timelines, st.lists(moments, max_size=8))
def test_history_is_made_of_what_came_before_the_next_instance(line: Timeline, refreshes: list[datetime]) -> None:
    """Each instance has the last data of its own time; where there was none, the first that came after it."""
    known: dict[datetime, str | None] = {}
    refreshes.sort()
    for number, refreshed in enumerate(refreshes):
        for _ in range(2):  # the second time nothing is left to do
            found = instances_to_record(line, ALL, known, refreshed, str(number))
            known.update(dict.fromkeys(found, str(number)))
        assert found == []
    for instance in line.until(ALL[0][1]):
        own = [number for number, refreshed in enumerate(refreshes) if line.at_or_before(refreshed) == instance]
        later = [number for number, refreshed in enumerate(refreshes) if refreshed >= instance]
        assert known.get(instance) == next((str(number) for number in [*own[-1:], *later]), None)


@given(timelines, moments, st.integers(0, 100))
def test_what_a_crash_left_out_is_made_up_for(line: Timeline, refreshed: datetime, written: int) -> None:
    whole = instances_to_record(line, ALL, {}, refreshed, "a")
    known = dict.fromkeys(whole[:written], "a")
    assert instances_to_record(line, ALL, dict(known), refreshed, "a") == whole[written:]


@given(timelines, moments, st.integers(0, 100), st.integers(0, 9))
def test_what_is_not_recorded_is_in_the_windows(line: Timeline, now: datetime, left_out: int, rest: int) -> None:
    recorded = line.until(now)[: -rest or None]
    if recorded and left_out % 2:
        recorded.pop(left_out % len(recorded))
    windows = unrecorded_windows(line, now, max(recorded, default=None), len(recorded))
    missing = set(line.until(now)) - set(recorded)
    assert all(any(first <= one <= last for first, last in windows) for one in missing)
    if not missing and recorded:
        assert windows == [(recorded[-1], now)]


def test_unchanged_data_that_is_older_than_the_windows_is_not_recorded_again() -> None:
    windows = [(at(30), at(40))]
    assert instances_to_record(HOURLY, windows, {at(3): "a"}, at(3.5), "a") == []
    assert instances_to_record(HOURLY, windows, {at(3): "a"}, at(3.7), "b") == [at(3)]
    assert instances_to_record(HOURLY, windows, {at(3): "a"}, at(31), "b") == [at(30), at(31)]


def test_older_data_that_was_put_back_is_another_version_of_the_newest() -> None:
    assert instances_to_record(HOURLY, [], {at(9): "b"}, at(4), "a") == [at(9)]
    assert instances_to_record(HOURLY, [], {}, at(-1), "a") == []


def test_the_time_of_a_refresh_on_each_clock() -> None:
    modified, origin = at(10), datetime(2000, 1, 1, tzinfo=UTC)
    assert refresh_time(modified, Clock()) == modified
    assert refresh_time(modified, Clock(origin)) == modified
    assert refresh_time(modified, Clock(origin, at(9), 60)) == origin + 60 * HOUR


def test_what_is_said() -> None:
    said = "snapshot last refreshed at 2013-01-01T04:00Z, needs >= 2013-01-01T05:00Z"
    assert not_refreshed(at(4), at(5)) == said
