from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.features.retention.rules import PendingInstances, needed_by_readers
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.model.process import Process
from falcon_assets.model.wall_clock import MICROSECOND
from falcon_assets.planning.input_windows import input_instances, latest_instances
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState
from falcon_assets.planning.timeline import Timeline, feed_timeline, process_timeline
from tests.builders import make_feed, make_process, workload_of
from tests.hours import START, hour

FEED = feed_timeline(make_feed(), "primary")
S = InstanceState


def pending(
    first_open: int | None = None,
    states: Mapping[int, InstanceRecord] | None = None,
    again: Collection[int] = (),
    now: int = 12,
    **overrides: Any,
) -> PendingInstances:
    return PendingInstances(
        workload_of(make_process(**overrides)),
        hour(now),
        None if first_open is None else hour(first_open),
        {hour(number): record for number, record in (states or {}).items()},
        {hour(number) for number in again},
    )


def record(number: int, state: InstanceState, **more: Any) -> InstanceRecord:
    return InstanceRecord(hour(number), state, **more)


def window(start: str, end: str) -> list[dict[str, str]]:
    return [{"name": "flights", "feed": "raw-flights", "start": start, "end": end}]


def kept(of: PendingInstances, available: set[int] | None = None) -> dict[int, str]:
    """Which of the first hours are kept, and why."""
    there = {hour(number) for number in available or set()}
    need = needed_by_readers(of, of.workload.inputs[0], FEED, there, list(map(hour, range(30))))
    return {number: str(reason) for number in range(30) if (reason := need(hour(number)))}


def needs(number: int, why: str) -> str:
    return f"process hourly-delays 2013-01-01T{number:02}:00Z needs it: it {why}"


def test_what_is_due_and_not_over_keeps_what_it_reads() -> None:
    settled = {10: record(10, S.SUCCEEDED), 11: record(11, S.KILLED)}
    assert kept(pending(first_open=10, states=settled)) == {12: needs(12, "has yet to run")}
    assert kept(pending(first_open=10)) == {number: needs(number, "has yet to run") for number in (10, 11, 12)}


def test_what_was_settled_long_ago_keeps_its_inputs_when_it_is_pending_again() -> None:
    states = {
        2: record(2, S.SUCCEEDED, queued_run="r2"),
        3: record(3, S.RUNNING, run_id="r3"),
        4: record(4, S.FAILED, failures=1),
        5: record(5, S.FAILED, failures=9),
        6: record(6, S.SUCCEEDED),
    }
    retry = {"policy": "periodic", "delay": "minutes(10)", "attempts": 2}
    assert kept(pending(12, states, {6, 7}, retry=retry)) == {
        2: needs(2, "is in run r2"),
        3: needs(3, "is in run r3"),
        4: needs(4, "has yet to run"),
        6: needs(6, "is to run again for late data"),
        7: needs(7, "is to run again for late data"),
        12: needs(12, "has yet to run"),
    }


def test_of_what_is_not_scheduled_only_runs_keep_their_inputs() -> None:
    states = {2: record(2, S.RUNNING, run_id="r2"), 4: record(4, S.FAILED, failures=0)}
    assert kept(pending(None, states)) == {2: needs(2, "is in run r2")}
    assert kept(pending(None)) == {}


def test_the_whole_window_is_kept_for_its_first_reader() -> None:
    found = kept(pending(11, inputs=window("now(-3,0)", "now(-1,0)")))
    assert found == {
        8: needs(11, "has yet to run"),
        9: needs(11, "has yet to run"),
        10: needs(11, "has yet to run"),
        11: needs(12, "has yet to run"),
    }


@pytest.mark.parametrize(
    ("start", "end", "available", "expected"),
    [
        ("latest(-1)", "latest(0)", {1, 2, 5, 20}, {2, 5}),
        ("latest(-3)", "latest(-2)", {1, 2, 5, 20}, {1}),
        ("latest(-3)", "latest(-2)", {1, 2}, {1, 2}),
        ("latest(0)", "latest(0)", set(), set()),
        ("future(0,9)", "future(0,9)", {1, 14, 16}, {14}),
    ],
    ids=["full", "deeper-than-there-is", "not-full", "nothing-there", "future"],
)
def test_windows_by_availability(start: str, end: str, available: set[int], expected: set[int]) -> None:
    found = kept(pending(12, inputs=window(start, end)), available)
    if (start, available) == ("latest(-3)", {1, 2, 5, 20}):
        expected = {1, 2, 5}  # four are asked for and three are there: all of them are needed
    assert found == dict.fromkeys(expected, needs(12, "has yet to run"))


def test_a_window_up_to_the_latest_keeps_all_that_it_may_read() -> None:
    found = kept(pending(8, inputs=window("now(-2,0)", "latest(0)"), now=9), {1, 6})
    assert found == dict.fromkeys((6, 7, 8), needs(8, "has yet to run")) | {9: needs(9, "has yet to run")}


def test_windows_that_go_back_and_forth() -> None:
    inputs = window("yesterday(0,0)", "today(2,0)")
    found = kept(pending(0, {number: record(number, S.SUCCEEDED) for number in range(1, 12)}, inputs=inputs, now=26))
    assert set(found) == {*range(30)} - {27, 28, 29}
    assert found[0] == needs(0, "has yet to run")
    assert found[3] == "process hourly-delays 2013-01-02T00:00Z needs it: it has yet to run"


@given(
    first=st.integers(-5, 5),
    length=st.integers(0, 6),
    first_open=st.integers(0, 30),
    over=st.sets(st.integers(0, 30)),
    again=st.sets(st.integers(0, 30), max_size=4),
    now=st.integers(0, 30),
)
def test_kept_is_what_pending_instances_read(
    first: int, length: int, first_open: int, over: set[int], again: set[int], now: int
) -> None:
    states = {number: record(number, S.SUCCEEDED) for number in over}
    inputs = window(f"now({first},0)", f"now({first + length},0)")
    readers = pending(first_open, states, again, now, inputs=inputs)
    open_ones = {number for number in range(first_open, now + 1) if number not in over} | again
    read = {
        instance
        for number in open_ones
        for instance in input_instances(readers.workload.inputs[0], FEED, hour(number), "UTC")
    }
    assert {hour(number) for number in kept(readers)} == {one for one in read if one < hour(30)}
    assert all_of(readers) == sorted(map(hour, open_ones))


def all_of(readers: PendingInstances) -> list[datetime]:
    """Asked for one after the other, from the beginning."""
    found: list[datetime] = []
    while (following := readers.first_from(found[-1] + MICROSECOND if found else START)) is not None:
        found.append(following)
    return found


TIMES = [
    *("now(0,0)", "now(-3,0)", "now(1,30)", "today(0,0)", "today(23,0)", "yesterday(6,0)", "currentWeek(SUN,0,0)"),
    *("lastMonth(1,0,0)", "dateOffset(instanceTime(),-1,'DAY')"),
    *("dateOffset('2013-10-27T05:00Z',3,'HOUR')", "dateOffset('2013-10-26T00:00Z',0,'DAY')"),
]
LATEST = [f"latest({number})" for number in (0, -1, -3)]
FUTURE = [f"future({number},{limit})" for number, limit in ((0, 1), (0, 5), (1, 4), (2, 30))]
ends = st.one_of(*(st.tuples(*[st.sampled_from(kind)] * 2) for kind in (TIMES, LATEST, FUTURE)))


@given(
    ends=ends,
    frequency=st.sampled_from(["hours(1)", "minutes(90)", "hours(5)", "days(1)"]),
    feed_frequency=st.sampled_from(["hours(1)", "minutes(90)", "hours(4)", "days(1)"]),
    zone=st.sampled_from(["UTC", "America/Sao_Paulo", "Europe/Berlin"]),
    first_open=st.none() | st.integers(0, 60),
    over=st.sets(st.integers(0, 60)),
    again=st.sets(st.integers(0, 60), max_size=4),
    available=st.sets(st.integers(0, 60)),
    asked=st.sets(st.integers(0, 60)),
)
def test_every_window_keeps_what_going_through_all_readers_finds(
    ends: tuple[str, str],
    frequency: str,
    feed_frequency: str,
    zone: str,
    first_open: int | None,
    over: set[int],
    again: set[int],
    available: set[int],
    asked: set[int],
) -> None:
    validity = {"start": "2013-10-25T00:00Z", "end": "2013-11-04T00:00Z"}  # both zones change their clocks meanwhile
    clusters = [{"name": "primary", "validity": validity}]
    process = make_process(frequency=frequency, timezone=zone, clusters=clusters, inputs=window(*ends))
    feed = feed_timeline(make_feed(frequency=feed_frequency, timezone=zone, clusters=clusters), "primary")
    nominals, instances = process_timeline(process, "primary").until(feed.end), feed.until(feed.end)
    opened = None if first_open is None else nominals[first_open % len(nominals)]
    states = {one: InstanceRecord(one, S.SUCCEEDED) for one in {nominals[number % len(nominals)] for number in over}}
    late = {nominals[number % len(nominals)] for number in again}
    readers = PendingInstances(workload_of(process), nominals[-3], opened, states, late)
    there, wanted = ({instances[number % len(instances)] for number in some} for some in (available, asked))
    expected: dict[datetime, str] = {}
    for nominal in nominals:
        if why := readers.why(nominal):
            for one in read(process, feed, nominal, there):
                expected.setdefault(one, f"process hourly-delays {format_instant(nominal)} needs it: it {why}")
    need = needed_by_readers(readers, process.inputs[0], feed, there, wanted)
    found = {one: str(reason) for one in wanted if (reason := need(one))}
    assert found == {one: expected[one] for one in wanted if one in expected}


def read(process: Process, feed: Timeline, nominal: datetime, there: set[datetime]) -> list[datetime]:
    """What an instance reads, or may come to read."""
    (declared,) = process.inputs
    if declared.is_of_times:
        return input_instances(declared, feed, nominal, process.timezone)
    found = latest_instances(declared, feed, nominal, there, process.timezone)
    if found is not None:
        return found
    return [one for one in there if (one <= nominal if declared.start.text in LATEST else one >= nominal)]


@pytest.mark.parametrize("ends", [("now(-1,0)", "now(0,0)"), ("today(0,0)", "now(0,0)"), ("latest(-1)", "latest(0)")])
def test_readers_are_not_gone_through(ends: tuple[str, str]) -> None:
    """A process of minutes that waits until the end of the calendar: it would take years."""
    for_ever = {"start": "2013-01-01T00:00Z", "end": "9999-12-31T23:59Z"}
    clusters = [{"name": "primary", "validity": for_ever}]
    process = make_process(frequency="minutes(1)", clusters=clusters, inputs=window(*ends))
    readers = PendingInstances(workload_of(process), parse_instant("9999-01-01T00:00Z"), START, {}, ())
    feed = feed_timeline(make_feed(clusters=clusters), "primary")
    need = needed_by_readers(readers, process.inputs[0], feed, {hour(5)}, [hour(5), hour(8)])
    assert str(need(hour(5))) == needs(5, "has yet to run")
    assert str(need(hour(8))) == (str(None) if ends[0] == "latest(-1)" else needs(8, "has yet to run"))
