from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.errors import UnknownEntityError
from falcon_assets.instances.rules.readiness import Readiness
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.planning.input_windows import input_instances, latest_instances
from falcon_assets.planning.timeline import feed_timeline
from tests.builders import make_feed, make_process, workload_of
from tests.properties import examples
from tests.work import calls

CLOCK_FREQUENCIES = ["minutes(7)", "minutes(45)", "minutes(60)", "hours(1)", "hours(5)", "hours(24)"]
FREQUENCIES = [*CLOCK_FREQUENCIES, "days(1)", "days(3)", "months(1)"]
ZONES = ["UTC", "America/New_York", "Australia/Lord_Howe"]
WINDOWS = [
    ("now(0,0)", "now(0,0)"),
    ("now(-1,0)", "now(0,0)"),
    ("now(-7,-13)", "now(-2,5)"),
    ("now(0,0)", "now(3,30)"),
    ("now(1,0)", "now(0,0)"),
    ("instanceTime()", "now(0,59)"),
    ("today(0,0)", "today(23,59)"),
    ("yesterday(0,0)", "now(0,0)"),
    ("currentMonth(0,0,0)", "now(0,0)"),
    ("latest(-2)", "latest(0)"),
    ("future(0,2)", "future(1,4)"),
    ("now(-7,-13)", "latest(0)"),
    ("currentMonth(0,0,0)", "latest(-2)"),
]


def at(text: str):
    return parse_instant(f"2013-01-{text}Z")


def on(start: str, end: str):
    return [{"name": "primary", "validity": {"start": start, "end": end}}]


def readiness(*inputs, feeds=(), **overrides) -> Readiness:
    """Of a process that reads those windows (name, feed, start, end, and ``optional`` or nothing)."""
    keys = ("name", "feed", "start", "end", "optional")
    declared = [dict(zip(keys, given, strict=False)) for given in inputs]
    process = make_process(inputs=declared, **overrides)
    return Readiness(workload_of(process, *(feeds or [make_feed()])))


def lines(missing) -> list[str]:
    """In words; of many the first three and how many more."""
    found = [str(one) for one in missing]
    return found if len(found) <= 3 else [*found[:3], f"... and {len(found) - 3} more"]


FLIGHTS = ("flights", "raw-flights", "now(0,0)", "now(0,0)")
WEATHER = make_feed(name="raw-weather", frequency="minutes(30)")


@pytest.mark.parametrize(
    ("inputs", "available", "expected"),
    [
        ([FLIGHTS], ["02T05:00"], []),
        ([FLIGHTS], ["02T04:00", "02T06:00"], ["flights: raw-flights 2013-01-02T05:00Z"]),
        ([(*FLIGHTS, True)], [], []),
        ([], [], []),
        ([("far", "raw-flights", "now(-50,0)", "now(-40,0)")], [], []),
        (
            [("flights", "raw-flights", "now(-2,0)", "now(0,0)")],
            ["02T04:00"],
            ["flights: raw-flights 2013-01-02T03:00Z", "flights: raw-flights 2013-01-02T05:00Z"],
        ),
        (
            [("flights", "raw-flights", "now(-2,0)", "now(0,0)")],
            [],
            [f"flights: raw-flights 2013-01-02T0{hour}:00Z" for hour in (3, 4, 5)],
        ),
        (
            [("flights", "raw-flights", "today(0,0)", "today(23,0)"), ("more", *FLIGHTS[1:])],
            ["02T01:00"],
            [f"flights: raw-flights 2013-01-02T0{hour}:00Z" for hour in (0, 2, 3)] + ["... and 21 more"],
        ),
        ([("flights", "raw-flights", "latest(-1)", "latest(0)")], ["02T01:00", "02T03:00"], []),
        (
            [("flights", "raw-flights", "latest(-1)", "latest(0)")],
            ["02T01:00", "02T06:00"],
            ["flights: raw-flights latest(-1) to latest(0)"],
        ),
        (
            [("next", "raw-flights", "future(0,2)", "future(0,2)"), FLIGHTS],
            ["02T07:00"],
            ["next: raw-flights future(0,2) to future(0,2)", "flights: raw-flights 2013-01-02T05:00Z"],
        ),
    ],
    ids=[
        "all there",
        "one missing",
        "optional",
        "no inputs",
        "outside the validity",
        "two missing",
        "three missing",
        "many missing",
        "enough latest",
        "not enough latest",
        "not enough future",
    ],
)
@pytest.mark.parametrize("as_callable", [False, True], ids=["mapping", "callable"])
def test_what_is_missing(inputs, available, expected, as_callable):
    instances = {"raw-flights": set(map(at, available))}
    asked = (lambda name: instances[name].__contains__) if as_callable else instances
    found = readiness(*inputs, feeds=[make_feed(clusters=on("2013-01-01T00:00Z", "2014-01-01T00:00Z"))])
    if inputs and inputs[0][0] == "far":
        found = readiness(*inputs, feeds=[make_feed(clusters=on("2013-01-01T00:00Z", "2013-01-01T00:01Z"))])
    assert lines(found.missing(at("02T05:00"), asked)) == expected


def test_a_feed_of_which_nothing_is_known_has_no_instances():
    two = readiness(FLIGHTS, ("weather", "raw-weather", "now(0,0)", "now(0,30)"), feeds=[make_feed(), WEATHER])
    assert lines(two.missing(at("02T05:00"), {"raw-weather": {at("02T05:00")}})) == [
        "flights: raw-flights 2013-01-02T05:00Z",
        "weather: raw-weather 2013-01-02T05:30Z",
    ]


def test_windows_end_with_the_validity_of_the_feed():
    short = make_feed(clusters=on("2013-01-02T04:00Z", "2013-01-02T06:00Z"))
    wide = readiness(("flights", "raw-flights", "now(-5,0)", "now(5,0)"), feeds=[short])
    assert lines(wide.missing(at("02T05:00"), {})) == [
        f"flights: raw-flights 2013-01-02T0{hour}:00Z" for hour in (4, 5)
    ]


@pytest.mark.parametrize(
    ("feed", "message"),
    [
        (WEATHER, "process 'hourly-delays' names feed 'raw-flights', which is not defined"),
        (
            make_feed(clusters=[{**on("2013-01-01T00:00Z", "2014-01-01T00:00Z")[0], "name": "backup"}]),
            "feed 'raw-flights' is not on cluster 'primary'; it is on: backup",
        ),
    ],
    ids=["not defined", "elsewhere"],
)
def test_feeds_that_are_not_there(feed, message):
    with pytest.raises(UnknownEntityError) as caught:
        list(readiness(FLIGHTS, feeds=[feed]).missing(at("02T05:00"), {}))
    assert str(caught.value) == message


@st.composite
def timed(draw, frequencies=FREQUENCIES):
    """Frequency, zone and validity of an entity."""
    start = at("01T00:00") + timedelta(minutes=draw(st.sampled_from([0, 7, 60, 90, 300, 1440 * 9])))
    end = start + timedelta(days=draw(st.integers(1, 150)))
    return {
        "frequency": draw(st.sampled_from(frequencies)),
        "timezone": draw(st.sampled_from(ZONES)),
        "clusters": on(format_instant(start), format_instant(end)),
    }


@examples(250)
@given(
    st.one_of(
        st.tuples(timed(), timed(), st.sampled_from(WINDOWS)),
        st.tuples(timed(CLOCK_FREQUENCIES), timed(CLOCK_FREQUENCIES), st.sampled_from(WINDOWS[:6])),
    ),
    st.integers(0, 400),
    st.integers(0, 6),
)
def test_the_same_as_asking_for_every_window(declared, index, kept):
    own, other, (start, end) = declared
    feed = make_feed(**other)
    ready = readiness(("flights", "raw-flights", start, end), feeds=[feed], **own)
    nominals, instances = ready.workload.timeline, feed_timeline(feed, "primary")
    nominal = nominals.instance(index % nominals.count)
    # Every seventh instance is available where ``kept`` is 0; all but every seventh where it is 6.
    available = {it for k, it in enumerate(instances.until(nominal + timedelta(days=40))) if k % 7 <= kept}
    window = ready.workload.inputs[0]
    if window.is_of_times:
        needed = input_instances(window, instances, nominal, ready.workload.timezone)
    else:
        needed = latest_instances(window, instances, nominal, available, ready.workload.timezone)
    if needed is None:
        expected = [f"flights: raw-flights {start} to {end}"]
    else:
        expected = [f"flights: raw-flights {format_instant(it)}" for it in needed if it not in available]
    assert lines(ready.missing(nominal, {"raw-flights": available})) == lines(expected)


def test_a_long_backlog_is_checked_in_a_moment():
    validity = on("2013-01-01T00:00Z", "2016-01-01T00:00Z")
    ready = readiness(FLIGHTS, feeds=[make_feed(clusters=validity)], clusters=validity)
    nominals = ready.workload.timeline.between(at("01T00:00"), parse_instant("2015-09-27T23:00Z"))
    available = {"raw-flights": set(nominals)}
    assert len(nominals) == 24_000
    assert calls(lambda: [next(ready.missing(nominal, available), None) for nominal in nominals]) < 20 * 24_000
