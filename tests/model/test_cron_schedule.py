"""Cron lines whose times are whole steps, compared with Dagster's schedules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from dagster._utils.schedules import cron_string_iterator
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.errors import ExpressionError
from falcon_assets.model.cron_schedule import CronSchedule
from falcon_assets.planning.timeline import Timeline

END = datetime(2100, 1, 1, tzinfo=UTC)
MOMENT = datetime(2024, 5, 15, 10, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "frequency", "first", "last"),
    [
        ("0 * * * *", "hours(1)", "2024-05-15T11:00", "2024-05-15T10:00"),
        ("15,45 * * * *", "minutes(30)", "2024-05-15T10:15", "2024-05-15T09:45"),
        ("*/5 * * * *", "minutes(5)", "2024-05-15T10:10", "2024-05-15T10:05"),
        ("0 3-23/4 * * *", "hours(4)", "2024-05-15T11:00", "2024-05-15T07:00"),
        ("30 2 * * *", "days(1)", "2024-05-16T02:30", "2024-05-15T02:30"),
        ("0 6 * * 1", "days(7)", "2024-05-20T06:00", "2024-05-13T06:00"),
        ("0 6 * * 7", "days(7)", "2024-05-19T06:00", "2024-05-12T06:00"),
        ("0 0 1 */3 *", "months(3)", "2024-07-01T00:00", "2024-04-01T00:00"),
        ("0 0 28 2 *", "months(12)", "2025-02-28T00:00", "2024-02-28T00:00"),
        ("7 10 * * *", "days(1)", "2024-05-15T10:07", "2024-05-15T10:07"),
    ],
)
def test_a_line_is_a_step_and_its_times(text: str, frequency: str, first: str, last: str) -> None:
    schedule = CronSchedule.parse(text)
    assert str(schedule.frequency) == frequency
    assert schedule.first_from(MOMENT, "UTC") == datetime.fromisoformat(first).replace(tzinfo=UTC)
    assert schedule.last_until(MOMENT, "UTC") == datetime.fromisoformat(last).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["0 2 * * 1-5", "0 0 31 * *", "0 */7 * * *", "0 2 1,15 * *", "0 0 1 1,2 *", "0 2 1 * 1"]
)
def test_times_that_are_no_whole_steps_are_refused(text: str) -> None:
    with pytest.raises(ExpressionError, match="has no even step: write one time a day"):
        CronSchedule.parse(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("* * *", "write minute hour day month weekday, as 30 2"),
        ("61 * * * *", "'61' is no minute: 0 to 59"),
        ("0 5-3 * * *", "'5-3' is no hour"),
        ("*/0 * * * *", "'\\*/0' is no minute"),
        ("0 0 0 * *", "'0' is no day of the month"),
        ("@daily", "is not a cron line"),
    ],
)
def test_what_is_no_cron_line_is_refused(text: str, why: str) -> None:
    with pytest.raises(ExpressionError, match=why):
        CronSchedule.parse(text)


@pytest.mark.parametrize(
    ("text", "timezone", "fits"),
    [
        ("0 */6 * * *", "UTC", True),
        ("0 */6 * * *", "Asia/Kolkata", True),
        ("0 */6 * * *", "Europe/Berlin", False),
        ("0 * * * *", "Europe/Berlin", True),
        ("0 * * * *", "Australia/Lord_Howe", False),
        ("*/30 * * * *", "Australia/Lord_Howe", True),
        ("0 6 * * *", "Europe/Berlin", True),
    ],
)
def test_several_times_a_day_need_a_clock_that_is_not_changed(text: str, timezone: str, fits: bool) -> None:
    assert CronSchedule.parse(text).fits(timezone) is fits


@st.composite
def lines(draw: st.DrawFn) -> str:
    minute, hour = draw(st.integers(0, 59)), draw(st.integers(0, 23))
    several = [
        f"{minute % step}-59/{step} * * * *"
        for step in (1, 5, 10, 15, 20, 30)
        for minute in [draw(st.integers(0, step))]
    ]
    single = [f"{minute} {hour} * * *", f"{minute} {hour} * * {draw(st.integers(0, 7))}"]
    months = f"{minute} {hour} {draw(st.integers(1, 28))} */{draw(st.sampled_from([1, 2, 3, 4, 6, 12]))} *"
    return draw(
        st.sampled_from(
            [*several, *single, months, f"{minute} */{draw(st.sampled_from([1, 2, 3, 4, 6, 8, 12]))} * * *"]
        )
    )


@given(
    lines(),
    st.sampled_from(["UTC", "Asia/Kolkata", "America/Phoenix"]),
    st.datetimes(datetime(2001, 1, 1), datetime(2040, 1, 1)),
)
def test_the_instances_are_those_of_the_schedule(text: str, timezone: str, wall: datetime) -> None:
    schedule, moment = CronSchedule.parse(text), wall.replace(tzinfo=UTC, second=0, microsecond=0)
    first = schedule.first_from(moment, timezone)
    line = Timeline(first, END, schedule.frequency, timezone)
    ticks = islice(cron_string_iterator((moment - timedelta(seconds=1)).timestamp(), text, timezone), 9)
    assert [line.instance(k) for k in range(9)] == [tick.astimezone(UTC) for tick in ticks]
    assert schedule.last_until(first + timedelta(seconds=1), timezone) == first
