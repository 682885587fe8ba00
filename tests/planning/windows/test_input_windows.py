from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from dateutil.rrule import DAILY, HOURLY, MINUTELY, MONTHLY, rrule
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.errors import ExpressionError
from falcon_assets.model.frequency import Frequency
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.model.process import Input, Output
from falcon_assets.planning.expressions import evaluate_time
from falcon_assets.planning.input_windows import (
    InstanceSet,
    input_instances,
    latest_instances,
    nominal_of_output,
    output_instance,
)
from falcon_assets.planning.timeline import Timeline
from tests.properties import examples

ZONES = ["UTC", "America/New_York", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kolkata"]
RULES = {"minutes": MINUTELY, "hours": HOURLY, "days": DAILY, "months": MONTHLY}
TIMES = [
    "now(0,0)",
    "now(-3,0)",
    "now(5,17)",
    "now(-400,0)",
    "today(0,0)",
    "today(23,0)",
    "today(2,30)",
    "yesterday(0,0)",
    "currentWeek(SUN,0,0)",
    "lastWeek(WED,12,0)",
    "currentMonth(0,0,0)",
    "lastMonth(0,0,0)",
    "currentYear(0,0,0,0)",
    "instanceTime()",
    "dateOffset(instanceTime(),-2,'DAY')",
]
nominals = st.datetimes(datetime(2013, 1, 1), datetime(2013, 12, 1)).map(
    lambda naive: naive.replace(second=0, microsecond=0, tzinfo=UTC)
)


def build(frequency: str, start: str, end: str, zone: str = "UTC") -> Timeline:
    return Timeline(parse_instant(start), parse_instant(end), Frequency.parse(frequency), zone)


def window(start: str, end: str) -> Input:
    return Input.model_validate({"name": "x", "feed": "f", "start": start, "end": end})


def output(instance: str) -> Output:
    return Output.model_validate({"name": "x", "feed": "f", "instance": instance})


def texts(instances) -> list[str]:
    return list(map(format_instant, instances))


def every_instance(timeline: Timeline, until: datetime) -> list[datetime]:
    """All existing instances up to ``until`` plus the next of the grid, told by dateutil's recurrence rules."""
    unit, count = timeline.frequency.unit.value, timeline.frequency.count
    zone = ZoneInfo("UTC" if unit in ("minutes", "hours") else timeline.timezone)
    anchor = timeline.start.astimezone(zone).replace(tzinfo=None)
    found = []
    for wall in rrule(RULES[unit], interval=count, dtstart=anchor):
        found.append(wall.replace(tzinfo=zone).astimezone(UTC))
        if found[-1] > until:
            return found
    raise AssertionError("the rule ended")


@st.composite
def feeds(draw):
    zone = draw(st.sampled_from(ZONES))
    frequency = draw(
        st.sampled_from(["minutes(90)", "hours(1)", "hours(5)", "days(1)", "days(3)", "months(1)", "months(3)"])
    )
    start = draw(st.datetimes(datetime(2012, 10, 1), datetime(2013, 12, 1)))
    start = start.replace(
        day=min(start.day, 28), second=0, microsecond=0, hour=draw(st.sampled_from([0, 4, 5, 12])), tzinfo=UTC
    )
    if not 1 <= start.astimezone(ZoneInfo(zone)).day <= 28:
        start = start.replace(day=15)
    return Timeline(start, start + timedelta(days=draw(st.integers(1, 300))), Frequency.parse(frequency), zone)


@examples(150)
@given(feeds(), st.sampled_from(TIMES), st.sampled_from(TIMES), nominals, st.sampled_from(ZONES))
def test_windows_against_going_through_every_instance(feed, start, end, nominal, zone):
    declared = window(start, end)
    first = evaluate_time(declared.start.call, nominal, zone)
    last = evaluate_time(declared.end.call, nominal, zone)
    found = input_instances(declared, feed, nominal, zone)
    every = every_instance(feed, max(last, feed.end))
    assert found == [
        this
        for this, following in pairwise(every)
        if first <= last and this <= last and following > first and this < feed.end
    ]
    assert all(instance <= last for instance in found)
    indexes = list(map(feed.index_at_or_before, found))
    assert indexes == list(range(indexes[0], indexes[0] + len(indexes))) if indexes else True


@pytest.mark.parametrize(
    ("start", "end", "nominal", "expected"),
    [
        ("now(-2,0)", "now(0,0)", "2013-01-02T06:00Z", ["2013-01-02T04:00Z", "2013-01-02T05:00Z", "2013-01-02T06:00Z"]),
        ("now(0,30)", "now(0,59)", "2013-01-02T06:00Z", ["2013-01-02T06:00Z"]),
        ("now(-5,0)", "now(1,0)", "2013-01-01T00:00Z", ["2013-01-01T00:00Z", "2013-01-01T01:00Z"]),
        ("now(-5,0)", "now(-1,0)", "2013-01-01T00:00Z", []),
        ("now(-2,0)", "now(2,0)", "2013-01-04T00:00Z", ["2013-01-03T22:00Z", "2013-01-03T23:00Z"]),
        ("now(0,0)", "now(2,0)", "2013-01-04T00:00Z", []),
        ("now(0,30)", "now(0,0)", "2013-01-02T06:00Z", []),
    ],
    ids=["plain", "within one", "over the start", "before the start", "over the end", "after the end", "reversed"],
)
def test_edges_of_the_validity(start, end, nominal, expected):
    feed = build("hours(1)", "2013-01-01T00:00Z", "2013-01-04T00:00Z")
    assert texts(input_instances(window(start, end), feed, parse_instant(nominal), "UTC")) == expected


def test_a_window_after_the_validity_does_not_reach_back_to_its_last_instance():
    feed = build("days(1)", "2013-01-01T00:00Z", "2013-01-03T12:00Z")
    nominal = parse_instant("2013-01-04T06:00Z")
    assert input_instances(window("now(0,0)", "now(0,0)"), feed, nominal, "UTC") == []


HOURS = build("hours(1)", "2013-01-01T00:00Z", "2013-01-02T00:00Z")
AVAILABLE = [parse_instant(f"2013-01-01T{hour:02}:00Z") for hour in (1, 2, 5, 6, 9)]


@pytest.mark.parametrize(
    ("start", "end", "nominal", "hours"),
    [
        ("latest(0)", "latest(0)", "2013-01-01T08:00Z", [6]),
        ("latest(0)", "latest(0)", "2013-01-01T06:30Z", [6]),
        ("latest(-2)", "latest(0)", "2013-01-01T08:00Z", [2, 5, 6]),
        ("latest(-2)", "latest(-1)", "2013-01-01T08:00Z", [2, 5]),
        ("latest(-3)", "latest(-3)", "2013-01-01T08:00Z", [1]),
        ("latest(-4)", "latest(0)", "2013-01-01T08:00Z", None),
        ("latest(0)", "latest(-2)", "2013-01-01T08:00Z", []),
        ("latest(0)", "latest(0)", "2012-12-31T08:00Z", None),
        ("latest(0)", "latest(0)", "2014-01-01T00:00Z", [9]),
        ("future(0,3)", "future(0,3)", "2013-01-01T06:00Z", [6]),
        ("future(0,3)", "future(0,3)", "2013-01-01T06:30Z", [9]),
        ("future(0,2)", "future(0,2)", "2013-01-01T06:30Z", None),
        ("future(0,9)", "future(2,9)", "2013-01-01T02:00Z", [2, 5, 6]),
        ("future(1,9)", "future(2,5)", "2013-01-01T02:00Z", [5, 6]),
        ("future(1,9)", "future(2,4)", "2013-01-01T02:00Z", None),
        ("future(1,3)", "future(2,9)", "2013-01-01T02:00Z", None),
        ("future(1,3)", "future(0,3)", "2013-01-01T02:00Z", []),
        ("future(0,5)", "future(0,5)", "2013-01-01T23:30Z", None),
        ("now(-2,0)", "latest(0)", "2013-01-01T06:30Z", [4, 5, 6]),
        ("now(-5,0)", "latest(0)", "2013-01-01T08:00Z", [3, 4, 5, 6]),
        ("now(-5,0)", "latest(-1)", "2013-01-01T08:00Z", [3, 4, 5]),
        ("now(-5,0)", "latest(-2)", "2013-01-01T08:00Z", None),
        ("now(-1,0)", "latest(0)", "2013-01-01T08:00Z", None),
        ("today(0,0)", "latest(0)", "2013-01-01T02:00Z", [0, 1, 2]),
        ("yesterday(0,0)", "latest(0)", "2013-01-01T01:59Z", [0, 1]),
        ("now(1,0)", "latest(0)", "2013-01-01T06:00Z", []),
        ("now(-2,0)", "latest(0)", "2012-12-31T08:00Z", []),
        ("now(-2,0)", "latest(0)", "2014-01-01T00:00Z", []),
        ("lastYear(0,0,0,0)", "latest(0)", "2014-01-01T00:00Z", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ],
)
@pytest.mark.parametrize(
    "available",
    [frozenset(AVAILABLE), AVAILABLE.__contains__, InstanceSet(AVAILABLE)],
    ids=["collection", "callable", "ordered"],
)
def test_latest_and_future(start, end, nominal, hours, available):
    expected = None if hours is None else [parse_instant(f"2013-01-01T{hour:02}:00Z") for hour in hours]
    assert latest_instances(window(start, end), HOURS, parse_instant(nominal), available, "UTC") == expected


def test_latest_asks_no_further_than_it_must():
    asked = []
    endless = build("minutes(5)", "1990-01-01T00:00Z", "2099-01-01T00:00Z")
    nominal = parse_instant("2013-01-01T00:00Z")
    declared = window("latest(-1)", "latest(0)")
    found = latest_instances(declared, endless, nominal, lambda it: asked.append(it) is None, "UTC")
    assert found == asked[::-1] and len(asked) == 2
    asked.clear()
    found = latest_instances(window("now(-1,0)", "latest(0)"), endless, nominal, asked.append, "UTC")
    assert found is None and len(asked) == 13


def test_what_kind_of_window_it_is_must_fit():
    with pytest.raises(ExpressionError) as caught:
        input_instances(window("latest(0)", "latest(0)"), HOURS, HOURS.start, "UTC")
    assert str(caught.value) == "latest(...) gives available instances, not a time"
    with pytest.raises(ExpressionError) as caught:
        latest_instances(window("now(0,0)", "now(0,0)"), HOURS, HOURS.start, [], "UTC")
    assert str(caught.value) == "now(...) is a time: it does not depend on what is available"


@pytest.mark.parametrize(
    ("instance", "nominal", "expected"),
    [
        ("now(0,0)", "2013-01-01T05:30Z", "2013-01-01T05:00Z"),
        ("today(0,0)", "2013-01-01T05:30Z", "2013-01-01T00:00Z"),
        ("now(-6,0)", "2013-01-01T05:30Z", None),
        ("now(24,0)", "2013-01-01T05:30Z", None),
    ],
)
def test_outputs(instance, nominal, expected):
    found = output_instance(output(instance), HOURS, parse_instant(nominal), "UTC")
    assert (format_instant(found) if found else None) == expected


@examples(60)
@given(
    feeds(),
    st.sampled_from([*TIMES, "dateOffset(today(0,0),1,'MONTH')"]),
    st.sampled_from(ZONES),
    st.integers(0, 10**6),
)
def test_the_inverse_of_an_output_against_trying_every_process_instance(feed, instance, zone, pick):
    declared = output(instance)
    for frequency in ("hours(19)", "days(1)", "months(1)"):
        process = build(frequency, "2013-01-01T00:00Z", "2013-07-01T00:00Z", zone)
        nominals = process.until(process.end)
        written = [output_instance(declared, feed, nominal, zone) for nominal in nominals]
        chosen = written[pick % len(written)] or feed.start
        expected = [nominal for nominal, found in zip(nominals, written, strict=True) if found == chosen]
        assert nominal_of_output(declared, process, feed, zone, chosen) == expected


def test_the_inverse_of_nothing():
    process = build("hours(1)", "2013-01-01T00:00Z", "2099-01-01T00:00Z")
    assert nominal_of_output(output("now(0,0)"), process, HOURS, "UTC", parse_instant("2013-01-01T00:30Z")) == []
    day = parse_instant("2013-01-01T00:00Z")
    assert nominal_of_output(output("now(0,0)"), process, HOURS, "UTC", day) == [day]
    far = output("dateOffset(now(0,0),999999999,'MONTH')")
    assert nominal_of_output(
        output("dateOffset('2013-01-01T00:00Z',0,'DAY')"), HOURS, HOURS, "UTC", day
    ) == HOURS.until(HOURS.end)
    with pytest.raises(ExpressionError, match="lies outside the years 1 to 9999"):
        output_instance(far, HOURS, day, "UTC")
