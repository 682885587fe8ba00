"""Which instances a process has: those whose outputs exist; and that all of them have a partition."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.planning.input_windows import output_instance
from falcon_assets.planning.timeline import feed_timeline, process_timeline
from falcon_assets.planning.workloads import ProcessWorkload
from tests.builders import make_feed, make_process
from tests.hours import START
from tests.properties import examples

FREQUENCIES = ["minutes(45)", "hours(1)", "hours(5)", "days(1)", "days(2)", "months(1)"]
EXPRESSIONS = [
    "now(0,0)",
    "now(-3,0)",
    "now(30,0)",
    "instanceTime()",
    "today(0,0)",
    "yesterday(6,0)",
    "lastWeek(SUN,0,0)",
    "currentMonth(0,0,0)",
    "lastMonth(0,0,0)",
    "dateOffset(today(0,0),1,'MONTH')",
    "dateOffset('2013-01-20T00:00Z',0,'DAY')",
]
ZONES = ["UTC", "America/New_York", "Pacific/Apia"]


def on(start, end):
    return [{"name": "primary", "validity": {"start": format_instant(start), "end": format_instant(end)}}]


@st.composite
def lives(draw):
    """A process and its outputs, each with its own life."""

    def life(longest):
        start = START + timedelta(hours=draw(st.integers(0, 24 * 60)))
        return on(start, start + timedelta(hours=draw(st.integers(1, longest))))

    zone = draw(st.sampled_from(ZONES))
    frequency = draw(st.sampled_from(FREQUENCIES))
    feeds = {
        name: make_feed(
            name=name,
            frequency=draw(st.sampled_from([frequency, *FREQUENCIES])),
            timezone=zone,
            clusters=life(24 * 90),
        )
        for name in ["one", "two"][: draw(st.integers(1, 2))]
    }
    outputs = [{"name": name, "feed": name, "instance": draw(st.sampled_from(EXPRESSIONS))} for name in feeds]
    long = 24 * 20 if frequency.startswith("minutes") else 24 * 90
    return make_process(frequency=frequency, timezone=zone, inputs=[], outputs=outputs, clusters=life(long)), feeds


@examples(200)
@given(lives())
def test_they_are_those_whose_outputs_all_exist(given):
    process, feeds = given
    workload = ProcessWorkload(process, "primary", feeds)
    raw, found = process_timeline(process, "primary"), workload.timeline
    lines = [(one, feed_timeline(feeds[one.feed], "primary")) for one in process.outputs]
    expected = [
        nominal
        for nominal in raw.until(raw.end)
        if all(output_instance(one, line, nominal, process.timezone) is not None for one, line in lines)
    ]
    assert found.until(raw.end) == expected
    partitions = workload.partitions
    assert partitions.nominal == found
    for nominal in expected:
        partition = partitions.partition_of(nominal)
        assert partitions.timeline.contains(partition)
        assert partitions.nominal_of(partition) == nominal
    if partitions.shift is None and expected:
        assert partitions.timeline.until(raw.end) == expected


def test_a_process_that_writes_nothing_has_all_of_its_validity():
    process = make_process(outputs=[])
    assert ProcessWorkload(process, "primary", {}).timeline == process_timeline(process, "primary")


@pytest.mark.parametrize(
    ("start", "expected"), [("2013-01-31", ["01-31", "02-28", "03-31"]), ("2013-02-28", ["02-28", "03-31", "04-30"])]
)
def test_ends_of_months(start, expected):
    """Stepping on from 28 February would not lead to 31 March."""
    end = parse_instant("2014-01-01T00:00Z")
    process = make_process(frequency="months(1)", inputs=[], clusters=on(parse_instant("2013-01-31T00:00Z"), end))
    daily = make_feed(name="delays", frequency="days(1)", clusters=on(parse_instant(f"{start}T00:00Z"), end))
    found = ProcessWorkload(process, "primary", {"delays": daily}).timeline.until(end)
    assert [f"{one:%m-%d}" for one in found[:3]] == expected


@pytest.mark.parametrize(
    ("frequency", "instance", "at_once"),
    [
        ("hours(1)", "now(0,0)", 4),
        ("hours(1)", "today(0,0)", 1),
        ("days(1)", "now(0,0)", 1),
        ("minutes(30)", "now(0,0)", 4),
        ("hours(2)", "now(0,0)", 1),
    ],
)
def test_what_several_instances_write_is_written_by_one_at_a_time(frequency, instance, at_once):
    here = on(START, START + timedelta(days=4))
    feed = make_feed(name="out", frequency=frequency, clusters=here)
    outputs = [{"name": "out", "feed": "out", "instance": instance}]
    process = make_process(frequency="hours(1)", inputs=[], outputs=outputs, clusters=here, parallel=4)
    assert ProcessWorkload(process, "primary", {"out": feed}).partitions.at_once == at_once
