from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import HealthCheck, event, given
from hypothesis import strategies as st

from falcon_assets.model.expression import Call, parse_expression
from falcon_assets.model.frequency import Frequency
from falcon_assets.model.instant import parse_instant
from falcon_assets.model.wall_clock import from_wall
from falcon_assets.planning.expressions import evaluate_time
from falcon_assets.planning.timeline import Timeline
from falcon_assets.planning.window_offsets import window_offsets
from tests.properties import examples
from tests.work import calls

TICK = timedelta(microseconds=1)
ZONES = [
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "America/Sao_Paulo",  # midnight gaps and repetitions until 2019
    "Asia/Beirut",
    "America/Havana",
    "America/St_Johns",  # changes at 00:01 until 2011
    "America/Nuuk",
    "Australia/Lord_Howe",  # half an hour
    "Asia/Kolkata",
    "Africa/Casablanca",
    "Pacific/Apia",  # no 30 December 2011
]


def timeline(frequency: str, start: str, end: str = "2016-01-01T00:00Z", zone: str = "UTC") -> Timeline:
    return Timeline(parse_instant(start), parse_instant(end), Frequency.parse(frequency), zone)


def disagreements(process: Timeline, feed: Timeline, start: Call, end: Call, offsets, indexes):
    """Nominal times at which the offsets say another window than the expressions, both as ranges of feed indexes."""
    for k in indexes:
        nominal = process.instance(k)
        first = evaluate_time(start, nominal, process.timezone)
        last = evaluate_time(end, nominal, process.timezone)
        said = range(feed.index_at_or_before(first), feed.index_at_or_before(last) + 1) if first <= last else range(0)
        lower, upper = process.instance(k + offsets[0]), process.instance(k + 1 + offsets[1])
        mapped = range(feed.index_at_or_before(lower - TICK) + 1, feed.index_at_or_before(upper - TICK) + 1)
        if said != mapped:
            yield nominal, said, mapped


NEW_YORK, KOLKATA, BEIRUT, LORD_HOWE = "America/New_York", "Asia/Kolkata", "Asia/Beirut", "Australia/Lord_Howe"
UTC = "UTC"


def read_timeline(text: str, zone: str) -> Timeline:
    frequency, _, start = text.partition(" from ")
    return timeline(frequency, f"{start}Z" if "T" in start else f"{start}T00:00Z", zone=zone)


@pytest.mark.parametrize(
    ("zone", "process", "feed", "window", "offsets"),
    [
        # absolute time
        (UTC, "hours(1) from 2013-01-01", "hours(1) from 2012-01-01", "now(0,0) .. now(0,0)", (0, 0)),
        (UTC, "hours(1) from 2013-01-01", "hours(1) from 2012-01-01", "now(-1,0) .. now(0,0)", (-1, 0)),
        (UTC, "hours(1) from 2013-01-01", "hours(1) from 2012-01-01T00:30", "now(0,0) .. now(0,0)", (-1, -1)),
        (UTC, "hours(1) from 2013-01-01", "minutes(5) from 2012-01-01", "now(0,0) .. now(0,55)", (0, 0)),
        (UTC, "hours(1) from 2013-01-01", "minutes(5) from 2012-01-01", "now(-1,0) .. now(0,-1)", (-1, -1)),
        (UTC, "hours(1) from 2013-01-01", "minutes(5) from 2012-01-01", "now(0,0) .. now(0,0)", None),
        (UTC, "hours(1) from 2013-01-01", "hours(24) from 2012-01-01", "now(0,0) .. now(0,0)", (-23, 0)),
        (UTC, "minutes(45) from 2013-01-01", "hours(1) from 2013-01-01", "now(0,0) .. now(0,0)", None),
        (UTC, "hours(1) from 2013-01-01", "hours(1) from 2012-01-01", "now(1,0) .. now(0,0)", None),
        (UTC, "hours(1) from 2013-01-01", "hours(1) from 2012-01-01", "latest(0) .. latest(0)", None),
        # days in UTC
        (UTC, "days(1) from 2013-01-01", "hours(1) from 2012-01-01", "today(0,0) .. today(23,0)", (0, 0)),
        (UTC, "days(1) from 2013-01-01", "hours(1) from 2012-01-01", "yesterday(0,0) .. now(-1,0)", (-1, -1)),
        (UTC, "days(1) from 2013-01-01", "days(1) from 2012-01-01", "now(-144,0) .. now(0,0)", (-6, 0)),
        (UTC, "hours(24) from 2013-01-01", "hours(1) from 2012-01-01", "today(0,0) .. today(23,0)", (0, 0)),
        (UTC, "days(1) from 2013-01-01T06:00", "hours(1) from 2012-01-01", "today(0,0) .. today(23,0)", None),
        # weeks and months in UTC
        (
            UTC,
            "days(7) from 2013-01-06",
            "hours(1) from 2012-01-01",
            "lastWeek(SUN,0,0) .. currentWeek(SAT,23,0)",
            (-1, -1),
        ),
        # on a Sunday the latest Saturday is yesterday, so last week's lies before last week's Sunday
        (UTC, "days(7) from 2013-01-06", "hours(1) from 2012-01-01", "lastWeek(SUN,0,0) .. lastWeek(SAT,23,0)", None),
        (
            UTC,
            "days(7) from 2013-01-06",
            "days(1) from 2012-01-01",
            "currentWeek(SUN,0,0) .. currentWeek(SUN,144,0)",
            (0, 0),
        ),
        (UTC, "days(1) from 2013-01-06", "days(1) from 2012-01-01", "currentWeek(SUN,0,0) .. today(0,0)", None),
        (
            UTC,
            "months(1) from 2013-01-01",
            "days(1) from 2012-01-01",
            "lastMonth(0,0,0) .. currentMonth(-1,0,0)",
            (-1, -1),
        ),
        (
            UTC,
            "months(1) from 2013-01-01",
            "days(1) from 2012-01-01",
            "currentMonth(0,0,0) .. currentMonth(30,0,0)",
            None,
        ),
        (
            UTC,
            "months(1) from 2013-01-01",
            "months(1) from 2012-01-01",
            "lastMonth(0,0,0) .. currentMonth(0,0,0)",
            (-1, 0),
        ),
        (UTC, "months(1) from 2013-01-01", "months(3) from 2012-01-01", "now(0,0) .. now(0,0)", (-2, 0)),
        (
            UTC,
            "months(12) from 2013-01-01",
            "months(1) from 2012-01-01",
            "lastYear(0,0,0,0) .. lastYear(11,0,0,0)",
            (-1, -1),
        ),
        (
            UTC,
            "months(12) from 2013-01-01",
            "hours(1) from 2012-01-01",
            "currentYear(0,0,0,0) .. currentYear(12,0,-1,0)",
            (0, 0),
        ),
        (UTC, "months(1) from 2013-01-31", "days(1) from 2012-01-01", "today(0,0) .. today(0,0)", None),
        # zones with daylight saving
        (NEW_YORK, "days(1) from 2013-01-01T05:00", "hours(1) from 2012-01-01", "today(0,0) .. today(23,0)", (0, 0)),
        (
            NEW_YORK,
            "days(1) from 2013-01-01T05:00",
            "minutes(5) from 2012-01-01",
            "yesterday(0,0) .. yesterday(23,55)",
            (-1, -1),
        ),
        (NEW_YORK, "days(1) from 2013-01-01T05:00", "hours(1) from 2012-01-01", "now(-24,0) .. now(-1,0)", None),
        (NEW_YORK, "days(1) from 2013-01-01T05:00", "days(1) from 2012-01-01T05:00", "now(-1,0) .. now(0,0)", None),
        (
            NEW_YORK,
            "days(1) from 2013-01-01T05:00",
            "days(1) from 2012-01-01T05:00",
            "yesterday(0,0) .. now(0,0)",
            (-1, 0),
        ),
        (
            NEW_YORK,
            "days(7) from 2013-01-06T05:00",
            "hours(1) from 2012-01-01",
            "lastWeek(SUN,0,0) .. currentWeek(SAT,23,0)",
            (-1, -1),
        ),
        (
            NEW_YORK,
            "months(1) from 2013-01-01T05:00",
            "hours(1) from 2012-01-01",
            "lastMonth(0,0,0) .. currentMonth(0,-1,0)",
            (-1, -1),
        ),
        (
            NEW_YORK,
            "months(1) from 2013-01-01T05:00",
            "days(1) from 2012-01-01T05:00",
            "lastMonth(0,0,0) .. currentMonth(-1,0,0)",
            (-1, -1),
        ),
        (
            KOLKATA,
            "days(1) from 2012-12-31T18:30",
            "hours(1) from 2012-01-01T00:30",
            "today(0,0) .. today(23,0)",
            (0, 0),
        ),
        (NEW_YORK, "hours(1) from 2013-01-01T05:00", "days(1) from 2012-01-01T05:00", "now(0,0) .. now(0,0)", None),
        # at the edge of what a zone can do: the last hour of the day may come twice in Beirut
        (BEIRUT, "days(1) from 2012-12-31T22:00", "hours(1) from 2012-01-01", "today(0,0) .. today(23,0)", None),
        # half hours of daylight saving do not fit whole hours, but half hours
        (LORD_HOWE, "days(1) from 2012-12-31T13:00", "hours(1) from 2012-01-01", "today(0,0) .. today(23,0)", None),
        (
            LORD_HOWE,
            "days(1) from 2012-12-31T13:00",
            "minutes(30) from 2012-01-01",
            "today(0,0) .. today(23,30)",
            (0, 0),
        ),
    ],
)
def test_known_windows(zone, process, feed, window, offsets):
    downstream, upstream = read_timeline(process, zone), read_timeline(feed, zone)
    calls = tuple(map(parse_expression, window.split(" .. ")))
    assert window_offsets(downstream, upstream, *calls) == offsets
    if offsets:
        indexes = range(min(downstream.count, 1200))
        assert list(disagreements(downstream, upstream, *calls, offsets, indexes)) == []


def test_different_zones_are_not_compared():
    calls = parse_expression("today(0,0)"), parse_expression("today(23,0)")
    feed = timeline("hours(1)", "2012-01-01T00:00Z", zone="Europe/Berlin")
    assert window_offsets(timeline("days(1)", "2013-01-01T00:00Z"), feed, *calls) is None


@st.composite
def windows(draw):
    zone = draw(st.sampled_from(ZONES))
    clock = draw(st.sampled_from([(0, 0), (0, 0), (0, 0), (0, 30), (1, 0), (2, 30), (6, 0), (23, 0), (23, 30)]))
    day = datetime(draw(st.sampled_from([2008, 2011, 2015])), 1, 1)
    day += timedelta(days=draw(st.sampled_from([0, 0, 0, 2, 3, 5, 30, 31, 100, 304])))
    process_frequency = draw(
        st.sampled_from(
            ["days(1)"] * 4
            + ["days(7)"] * 3
            + ["days(2)", "days(14)", "months(1)", "months(1)", "months(3)", "months(12)"]
            + ["hours(1)", "hours(1)", "hours(24)", "minutes(30)", "hours(5)"]
        )
    )
    start = from_wall(day.replace(hour=clock[0], minute=clock[1]), zone)
    process = Timeline(start, start + timedelta(days=1500), Frequency.parse(process_frequency), zone)
    feed_frequency = draw(
        st.sampled_from(
            ["hours(1)"] * 4
            + ["minutes(30)", "minutes(5)", "hours(2)", "hours(24)", "minutes(45)", "hours(36)"]
            + ["days(1)", "days(1)", "days(2)", "days(7)", "months(1)", "months(3)"]
        )
    )
    back = timedelta(
        days=draw(st.sampled_from([0, 7, 365, 3000])), minutes=draw(st.sampled_from([0, 0, 0, 30, 60, 720]))
    )
    feed = Timeline(start - back, start + timedelta(days=9999), Frequency.parse(feed_frequency), zone)
    hour = draw(st.sampled_from([0, 0, 0, 1, 2, 3, 12, -1, 23, 24, -24, -25]))
    minute = draw(st.sampled_from([0, 0, 0, 0, 30, 55, -1, 1]))
    last_hour = draw(st.sampled_from([23, 23, 22, -1, 0, 0, 1, 47, hour]))
    last_minute = draw(st.sampled_from([0, 0, 0, 0, 30, 55, 59, minute, -1]))
    name = draw(
        st.sampled_from(
            ["now", "today", "today", "yesterday", "week", "week", "month", "month", "year", "instanceTime"]
        )
    )
    days = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
    weekday = days[(process.start.isoweekday() + draw(st.sampled_from([0, 0, 1, 6]))) % 7]
    other = days[(days.index(weekday) + draw(st.sampled_from([0, 6, 6, 3]))) % 7]
    kinds = {
        "now": [("now",)],
        "today": [("today",)],
        "yesterday": [("yesterday",), ("today",)],
        "week": [("currentWeek", weekday), ("lastWeek", weekday), ("lastWeek", other), ("currentWeek", other)],
        "month": [("currentMonth", 0), ("lastMonth", 0), ("currentMonth", -1), ("lastMonth", 30)],
        "year": [("currentYear", 0, 0), ("lastYear", 0, 0), ("lastYear", 11, 0), ("currentYear", 12, 0)],
        "instanceTime": [("instanceTime",)],
    }

    def call(kind, *numbers):
        return Call("instanceTime") if kind[0] == "instanceTime" else Call(kind[0], (*kind[1:], *numbers))

    first = call(draw(st.sampled_from(kinds[name])), hour, minute)
    last_name = draw(st.sampled_from([name, name, name, name, "now", "today"]))
    last = call(draw(st.sampled_from(kinds[last_name])), last_hour, last_minute)
    return process, feed, first, last


@st.composite
def aligned_windows(draw):
    """Whole days, weeks, months or years of a finer feed, give or take a little: most of these can be proved."""
    zone = draw(st.sampled_from(ZONES))
    frequency, name, whole, back, more = draw(
        st.sampled_from(
            [
                ("days(1)", "today", (), 0, 24),
                ("days(1)", "yesterday", (), 0, 24),
                ("days(7)", "currentWeek", ("SUN",), 0, 7 * 24),
                ("days(7)", "lastWeek", ("SUN",), 0, 7 * 24),
                ("days(14)", "lastWeek", ("SUN",), 7 * 24, 7 * 24),
                ("months(1)", "currentMonth", (0,), 0, 0),
                ("months(1)", "lastMonth", (0,), 0, 0),
                ("months(12)", "lastYear", (0, 0), 0, 0),
                ("hours(24)", "today", (), 0, 24),
            ]
        )
    )
    day = datetime(draw(st.integers(2006, 2020)), 1, 1)
    if frequency.startswith("days"):
        day += timedelta(days=6 - day.weekday() + 7 * draw(st.integers(0, 60)))
    start = from_wall(day, zone)
    process = Timeline(start, start + timedelta(days=1500), Frequency.parse(frequency), zone)
    feeds = [("hours(1)", 60), ("hours(1)", 60), ("minutes(30)", 30), ("hours(6)", 360), ("days(1)", 1440)]
    feed_frequency, length = draw(st.sampled_from(feeds))
    feed_start = from_wall(day - timedelta(days=draw(st.sampled_from([0, 1, 300, 3000]))), zone)
    feed = Timeline(feed_start, start + timedelta(days=9999), Frequency.parse(feed_frequency), zone)
    late = draw(st.sampled_from([0, 0, 0, 0, 1, length - 1, length, -1]))
    early = draw(st.sampled_from([length, length, length, 1, length - 1, length + 1, 0]))
    following = {
        "currentMonth": ("currentMonth", (31,)),
        "lastMonth": ("currentMonth", (0,)),
        "lastYear": ("currentYear", (0, 0)),
    }
    end_name, end_whole = following.get(name, (name, whole))
    first = Call(name, (*whole, back, late))
    return process, feed, first, Call(end_name, (*end_whole, back + more, -early))


@examples(500, suppress=list(HealthCheck))
@given(aligned_windows(), st.integers(0, 10**6))
def test_offsets_of_whole_periods_are_never_wrong(window, shift):
    process, feed, start, end = window
    offsets = window_offsets(process, feed, start, end)
    event(f"proved: {offsets is not None}")
    if offsets is not None:
        indexes = range(shift % 5, process.count, 5 if process.count > 400 else 1)
        assert next(disagreements(process, feed, start, end, offsets, indexes), None) is None


@examples(1200, suppress=list(HealthCheck))
@given(windows(), st.randoms(use_true_random=False))
def test_offsets_are_never_wrong(window, random):
    process, feed, start, end = window
    offsets = window_offsets(process, feed, start, end)
    event(f"proved: {offsets is not None}")
    if offsets is not None:
        count = process.count
        indexes = sorted(random.sample(range(count), min(count, 150)))
        # and every day around which a zone changes its clocks
        changing = [k for k in indexes if process.instance(k).month in (3, 4, 10, 11)]
        more = {k + near for k in changing[:40] for near in (-2, -1, 1, 2) if 0 <= k + near < count}
        wrong = next(disagreements(process, feed, start, end, offsets, sorted({*indexes, *more})), None)
        assert wrong is None


def test_it_is_cheap():
    process = timeline("days(1)", "2013-01-01T05:00Z", "2099-01-01T05:00Z", "America/New_York")
    feeds = [
        timeline("hours(1)", f"2012-01-01T{hour:02}:{minute:02}Z", zone="America/New_York")
        for hour in range(24)
        for minute in range(60)
    ]
    start, end = parse_expression("today(0,0)"), parse_expression("today(23,0)")
    window_offsets(process, timeline("hours(1)", "2011-01-01T00:00Z", zone="America/New_York"), start, end)
    assert calls(lambda: [window_offsets(process, feed, start, end) for feed in feeds]) < 150 * len(feeds)


def test_years_beyond_the_calendar_are_no_crash():
    process = Timeline(
        datetime(9990, 1, 1, tzinfo=timezone.utc),  # noqa: UP017 - UTC is a zone's name here
        datetime(9999, 12, 31, 23, 59, tzinfo=timezone.utc),  # noqa: UP017 - UTC is a zone's name here
        Frequency.parse("days(1)"),
        "Europe/Berlin",
    )
    assert window_offsets(process, process, parse_expression("today(0,0)"), parse_expression("now(0,0)")) == (-1, 0)
    far = parse_expression("now(999999999,0)")
    assert window_offsets(process, process, far, far) is None
