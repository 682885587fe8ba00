from __future__ import annotations

from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.history.mapping.partitions import instant_of_key, key_of, partitions_of, timeline_of_dynamic
from falcon_assets.model.frequency import Frequency
from falcon_assets.planning.timeline import Timeline
from tests.properties import examples

ZONES = ["UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Cairo"]
CRON = ["minutes(1)", "minutes(5)", "minutes(15)", "minutes(45)", "minutes(90)", "hours(1)", "hours(2)", "hours(6)",
        "hours(12)", "hours(24)", "days(1)", "days(7)", "months(1)", "months(3)", "months(12)"]  # fmt: skip
DYNAMIC = ["minutes(7)", "hours(5)", "hours(36)", "days(2)", "days(10)", "months(5)", "months(24)"]


def timeline(frequency: str, zone: str = "UTC", start: datetime | None = None, steps: int = 60) -> Timeline:
    start = start or datetime(2013, 1, 1, tzinfo=UTC)
    step = Frequency.parse(frequency)
    return Timeline(start, start + steps * step.length, step, zone)


@pytest.mark.parametrize("frequency", CRON)
def test_a_frequency_with_a_period_is_a_time_window(frequency: str) -> None:
    assert isinstance(partitions_of(timeline(frequency)), dg.TimeWindowPartitionsDefinition)


@pytest.mark.parametrize("frequency", DYNAMIC)
def test_a_frequency_without_a_period_is_dynamic_and_its_name_says_the_timeline(frequency: str) -> None:
    expected = timeline(frequency)
    partitions = partitions_of(expected)
    assert isinstance(partitions, dg.DynamicPartitionsDefinition)
    assert timeline_of_dynamic(partitions.name or "") == expected


@examples(150)
@given(
    frequency=st.sampled_from(CRON),
    zone=st.sampled_from(ZONES),
    minutes=st.integers(0, 3 * 366 * 24 * 60),
    steps=st.integers(1, 80),
)
def test_dagster_enumerates_exactly_the_instances(frequency: str, zone: str, minutes: int, steps: int) -> None:
    start = datetime(2011, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    line = timeline(frequency, zone, start, steps)
    partitions = partitions_of(line)
    if isinstance(partitions, dg.TimeWindowPartitionsDefinition):
        instances = line.between(line.start, line.end)
        keys = list(partitions.get_partition_keys(current_time=line.end + timedelta(days=1)))
        assert keys == [key_of(line, instant) for instant in instances]
        assert [instant_of_key(key) for key in keys] == instances


def test_an_instance_exists_from_its_nominal_time_on() -> None:
    hourly = partitions_of(timeline("hours(1)"))
    now = datetime(2013, 1, 1, 3, 1, tzinfo=UTC)
    assert list(hourly.get_partition_keys(current_time=now)) == [f"2013-01-01T0{hour}:00Z" for hour in range(4)]


@pytest.mark.parametrize(
    ("frequency", "zone", "key"),
    [
        ("hours(1)", "UTC", "2013-01-01T00:00Z"),
        ("days(1)", "America/New_York", "2012-12-31T19:00-0500"),
        ("hours(5)", "America/New_York", "2013-01-01T00:00Z"),
    ],
)
def test_the_key_says_the_instant(frequency: str, zone: str, key: str) -> None:
    line = timeline(frequency, zone)
    assert key_of(line, line.start) == key
    assert instant_of_key(key) == line.start


@pytest.mark.parametrize("key", ["", "2013-01-01", "__ASSET_JOB", "2013-13-01T00:00Z"])
def test_what_is_no_key_of_ours_has_no_instant(key: str) -> None:
    assert instant_of_key(key) is None


@pytest.mark.parametrize("name", ["colors", "falcon a b c", "falcon a b c d e"])
def test_other_dynamic_partitions_are_left_alone(name: str) -> None:
    assert timeline_of_dynamic(name) is None
