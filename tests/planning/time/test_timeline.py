from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from dateutil.relativedelta import relativedelta
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.errors import UnknownEntityError, UnknownInstanceError
from falcon_assets.model.frequency import Frequency
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.planning.timeline import Timeline, feed_timeline, process_timeline
from tests.builders import make_feed, make_process
from tests.properties import examples
from tests.work import calls
from tests.zones import ZONES

FREQUENCIES = [
    "minutes(5)",
    "minutes(45)",
    "hours(1)",
    "hours(5)",
    "hours(24)",
    "days(1)",
    "days(2)",
    "days(7)",
    "months(1)",
    "months(5)",
    "months(12)",
]
moments = st.datetimes(datetime(2005, 1, 1), datetime(2030, 1, 1)).map(lambda naive: naive.replace(tzinfo=UTC))
minutes = moments.map(lambda moment: moment.replace(second=0, microsecond=0))
timelines = st.builds(
    lambda start, days, frequency, zone: Timeline(
        start, start + timedelta(days=days), Frequency.parse(frequency), zone
    ),
    minutes,
    st.integers(1, 2000),
    st.sampled_from(FREQUENCIES),
    st.sampled_from(ZONES),
)


def localize(wall: datetime, zone: str) -> datetime:
    """The first moment at which clocks show ``wall``; where they never do, ``wall`` by the offset before the gap."""
    offsets = [
        (wall.replace(tzinfo=UTC) + timedelta(hours=h)).astimezone(ZoneInfo(zone)).utcoffset() for h in (-30, 30)
    ]
    candidates = [wall.replace(tzinfo=UTC) - offset for offset in offsets]
    shown = [moment for moment in candidates if moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None) == wall]
    return min(shown) if shown else candidates[0]


def expected_instance(timeline: Timeline, k: int) -> datetime:
    step = {timeline.frequency.unit.value: timeline.frequency.count * k}
    if timeline.frequency.unit.value in ("minutes", "hours") or k == 0:
        return timeline.start + timedelta(**step) if k else timeline.start
    anchor = timeline.start.astimezone(ZoneInfo(timeline.timezone)).replace(tzinfo=None)
    return localize(anchor + relativedelta(**step), timeline.timezone)


@given(timelines, st.integers(-200, 5000))
def test_instances_are_steps_from_the_start(timeline, k):
    k = k % 600 - 100 if timeline.frequency.unit.value == "months" else k
    assert timeline.instance(k) == expected_instance(timeline, k)
    assert timeline.instance(k).utcoffset() == timedelta()


@given(timelines, st.integers(-100, 3000))
def test_the_index_is_the_inverse_of_the_instance(timeline, k):
    instance = timeline.instance(k)
    assert timeline.index_at_or_before(instance) == k
    assert timeline.index_at_or_before(instance - timedelta(microseconds=1)) == k - 1
    assert timeline.instance(k - 1) < instance < timeline.instance(k + 1)


@given(timelines, moments)
def test_the_index_floors(timeline, moment):
    index = timeline.index_at_or_before(moment)
    assert timeline.instance(index) <= moment < timeline.instance(index + 1)


@given(timelines, st.lists(moments, min_size=2, max_size=2).map(sorted))
def test_the_index_is_monotonic(timeline, pair):
    assert timeline.index_at_or_before(pair[0]) <= timeline.index_at_or_before(pair[1])


@given(timelines, st.integers(-100, 3000))
def test_walls_are_unique_and_map_back(timeline, k):
    wall = timeline.wall(k)
    assert timeline.wall(k - 1) < wall < timeline.wall(k + 1)
    assert timeline.index_of_wall(wall) == k
    assert timeline.index_of_wall(wall + timedelta(microseconds=1)) == k + 1


@examples(60)
@given(timelines.filter(lambda it: it.count < 3000), moments, moments)
def test_lists_against_counting_one_by_one(timeline, first, last):
    every, k = [], 0
    while (instance := expected_instance(timeline, k)) < timeline.end:
        every.append(instance)
        k += 1
    assert timeline.count == len(every)
    assert timeline.last == every[-1]
    once = list(dict.fromkeys(every))  # where a zone left a day out, two steps are one instance
    assert timeline.between(first, last) == [instance for instance in once if first <= instance <= last]
    assert timeline.until(last) == [instance for instance in once if instance <= last]
    assert timeline.at_or_before(last) == max((instance for instance in every if instance <= last), default=None)
    assert all(map(timeline.contains, every))
    assert not timeline.contains(expected_instance(timeline, -1))
    assert not timeline.contains(expected_instance(timeline, k))


def build(frequency: str, start: str, end: str, zone: str = "UTC") -> Timeline:
    return Timeline(parse_instant(start), parse_instant(end), Frequency.parse(frequency), zone)


@pytest.mark.parametrize(
    ("frequency", "start", "zone", "expected"),
    [
        ("months(1)", "2013-01-31T00:00Z", "UTC", ["2013-01-31T00:00Z", "2013-02-28T00:00Z", "2013-03-31T00:00Z"]),
        ("months(12)", "2012-02-29T00:00Z", "UTC", ["2012-02-29T00:00Z", "2013-02-28T00:00Z", "2014-02-28T00:00Z"]),
        (
            "days(1)",
            "2013-03-09T07:30Z",
            "America/New_York",
            ["2013-03-09T07:30Z", "2013-03-10T07:30Z", "2013-03-11T06:30Z"],
        ),
        (
            "days(1)",
            "2013-11-02T05:30Z",
            "America/New_York",
            ["2013-11-02T05:30Z", "2013-11-03T05:30Z", "2013-11-04T06:30Z"],
        ),
        (
            "hours(12)",
            "2013-03-10T00:00Z",
            "America/New_York",
            ["2013-03-10T00:00Z", "2013-03-10T12:00Z", "2013-03-11T00:00Z"],
        ),
        (
            "days(1)",
            "2013-11-03T06:30Z",
            "America/New_York",
            ["2013-11-03T06:30Z", "2013-11-04T06:30Z", "2013-11-05T06:30Z"],
        ),
    ],
    ids=["month ends", "leap day", "spring gap", "first of two", "hours are absolute", "starts in the second of two"],
)
def test_calendar_steps(frequency, start, zone, expected):
    timeline = build(frequency, start, "2020-01-01T00:00Z", zone)
    assert [format_instant(timeline.instance(k)) for k in range(3)] == expected


def test_a_dropped_day_names_its_instance_once():
    timeline = build("days(1)", "2011-12-29T10:00Z", "2012-01-02T00:00Z", "Pacific/Apia")
    assert list(map(format_instant, timeline.until(timeline.end))) == [
        "2011-12-29T10:00Z",
        "2011-12-30T10:00Z",
        "2011-12-31T10:00Z",
        "2012-01-01T10:00Z",
    ]


@pytest.mark.parametrize(
    ("moment", "why"),
    [
        ("2012-12-31T23:00Z", "its validity starts at 2013-01-01T00:00Z"),
        ("2014-01-01T00:00Z", "its validity ends at 2014-01-01T00:00Z"),
        (
            "2013-01-03T06:20Z",
            "its frequency is hours(5), and the nearest ones are 2013-01-03T02:00Z and 2013-01-03T07:00Z",
        ),
        ("2013-12-31T23:59Z", "its frequency is hours(5), and the last one is 2013-12-31T19:00Z"),
    ],
    ids=["before", "at the end", "between", "after the last"],
)
def test_exact_messages(moment, why):
    timeline = build("hours(5)", "2013-01-01T00:00Z", "2014-01-01T00:00Z")
    with pytest.raises(UnknownInstanceError) as caught:
        timeline.require(parse_instant(moment), "feed 'x' on cluster 'y'")
    assert str(caught.value) == f"feed 'x' on cluster 'y' has no instance {moment}: {why}"


def test_an_instance_is_fine():
    assert (
        build("hours(5)", "2013-01-01T00:00Z", "2014-01-01T00:00Z").require(parse_instant("2013-01-01T05:00Z"), "")
        is None
    )


def test_a_century_of_five_minutes_costs_nothing():
    timeline = build("minutes(5)", "2000-01-01T00:00Z", "2099-12-31T00:00Z")

    def asked() -> None:
        assert timeline.count == 10_518_912
        assert timeline.last == parse_instant("2099-12-30T23:55Z")
        assert len(timeline.between(parse_instant("2050-01-01T00:00Z"), parse_instant("2050-01-01T01:00Z"))) == 13
        assert len(timeline.indexes(timeline.start, timeline.end)) == timeline.count
        assert not timeline.contains(parse_instant("2050-01-01T00:01Z"))

    assert calls(asked) < 300


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
@pytest.mark.parametrize("frequency", FREQUENCIES)
def test_to_the_end_of_the_calendar(frequency, zone):
    timeline = build(frequency, "9990-01-01T00:00Z", "9999-12-31T23:59Z", zone)
    assert timeline.instance(timeline.count - 1) == timeline.last
    assert timeline.at_or_before(datetime.max.replace(tzinfo=UTC)) == timeline.last


def test_an_empty_validity():
    timeline = build("hours(1)", "2013-01-01T00:00Z", "2013-01-01T00:00Z")
    assert (timeline.count, timeline.last, timeline.until(timeline.end)) == (0, None, [])
    assert timeline.at_or_before(timeline.end) is None


def test_of_entities():
    expected = build("hours(1)", "2013-01-01T00:00Z", "2014-01-01T00:00Z")
    assert feed_timeline(make_feed(), "primary") == expected
    assert process_timeline(make_process(timezone="Europe/Berlin"), "primary") == Timeline(
        expected.start, expected.end, expected.frequency, "Europe/Berlin"
    )
    with pytest.raises(UnknownEntityError) as caught:
        feed_timeline(make_feed(), "backup")
    assert str(caught.value) == "feed 'raw-flights' is not on cluster 'backup'; it is on: primary"
    with pytest.raises(UnknownEntityError) as caught:
        process_timeline(make_process(), "backup")
    assert str(caught.value) == "process 'hourly-delays' is not on cluster 'backup'; it is on: primary"


@examples(300)
@given(timelines, st.data())
def test_a_cut_timeline_has_the_same_instances(timeline: Timeline, data):
    everything = timeline.until(timeline.end)[:500]
    first = data.draw(st.integers(0, len(everything)))
    stop = data.draw(st.integers(first, len(everything)))
    # Where a zone left a day out, two indexes are one instance.
    indexes = [timeline.index_at_or_before(instance) for instance in everything]
    span = range(indexes[first], indexes[stop - 1] + 1) if first < stop else range(0)
    cut = timeline.cut(span)
    assert cut.until(timeline.end) == everything[first:stop]
    assert [instance for instance in everything if cut.contains(instance)] == everything[first:stop]
    assert cut.first <= 12 and cut.last == (everything[stop - 1] if first < stop else None)
    for instance in everything[first:stop][:50]:
        k = cut.index_at_or_before(instance)
        assert cut.instance(k) == instance == cut.at_or_before(instance)
        assert timeline.instance(timeline.index_at_or_before(instance) + 7) == cut.instance(k + 7)


def test_what_a_cut_left_is_no_instance():
    ends = Timeline(
        parse_instant("2013-01-31T00:00Z"), parse_instant("2014-01-01T00:00Z"), Frequency.parse("months(1)"), "UTC"
    )
    cut = ends.cut(range(1, 4))
    march = parse_instant("2013-03-31T00:00Z")
    assert [f"{one:%m-%d}" for one in cut.until(march)] == ["02-28", "03-31"]
    assert (cut.start, cut.first, cut.at_or_before(cut.start)) == (ends.start, 1, None)
    with pytest.raises(UnknownInstanceError, match="its validity starts at 2013-02-28T00:00Z"):
        cut.require(ends.start, "feed 'x'")
