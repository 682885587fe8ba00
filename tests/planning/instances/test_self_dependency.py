"""Whether instances wait for themselves, against a graph of all instances of small worlds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, cached_property

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from falcon_assets.model.expression import Call, parse_expression
from falcon_assets.model.expression_functions import Kind
from falcon_assets.model.frequency import Frequency
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.model.process import Input, Output
from falcon_assets.planning.expressions import evaluate_time
from falcon_assets.planning.input_windows import input_instances, output_instance
from falcon_assets.planning.self_dependency import Copied, Read, SelfWait, Step, Write, first_self_wait
from falcon_assets.planning.timeline import Timeline


def timeline(frequency: str, start: str, days: float = 30, zone: str = "UTC") -> Timeline:
    begin = parse_instant(start)
    return Timeline(begin, begin + timedelta(days=days), Frequency.parse(frequency), zone)


def call(text: str) -> Call:
    return parse_expression(text)


@dataclass(frozen=True)
class Ring:
    """Each process reads what the next one writes; the last one's feed is read by the first."""

    links: tuple[tuple[Timeline, str, str, Timeline, str], ...]
    """Process, start, end, the feed that it reads, and what the writer of that feed says it writes."""

    def way(self) -> tuple[Step, ...]:
        steps: list[Step] = []
        for index, (process, start, end, feed, written) in enumerate(self.links):
            writer = self.links[(index + 1) % len(self.links)][0]
            steps.append(Read(process, feed, call(start), call(end), process.timezone))
            steps.append(Write(feed, writer, call(written), writer.timezone))
        return tuple(steps)

    def needs(self, index: int, nominal: datetime) -> set[datetime]:
        """The instances of the next process that one instance needs."""
        process, start, end, feed, _ = self.links[index]
        if call(end).kind is not Kind.TIME and call(start).kind is Kind.TIME:
            first = feed.index_at_or_before(evaluate_time(call(start), nominal, process.timezone))
            read = {T for T in feed.until(nominal) if feed.index_at_or_before(T) >= first}
        elif call(end).kind is Kind.TIME:
            declared = Input.model_validate({"name": "i", "feed": "f", "start": start, "end": end})
            read = set(input_instances(declared, feed, nominal, process.timezone))
        else:
            read = set(feed.until(nominal))
        return {nominal for instance, nominal in self.made[index] if instance in read}

    @cached_property
    def made(self) -> list[list[tuple[datetime | None, datetime]]]:
        """Of each link what the instances of the next process write."""
        found = []
        for index, (_, _, _, feed, written) in enumerate(self.links):
            writer = self.links[(index + 1) % len(self.links)][0]
            output = Output.model_validate({"name": "o", "feed": "f", "instance": written})
            found.append([(output_instance(output, feed, T, writer.timezone), T) for T in writer.until(writer.end)])
        return found

    def first_self_wait(self) -> SelfWait | None:
        """The same by looking at all of them, once around."""
        process, needs = self.links[0][0], cache(self.needs)
        for nominal in process.until(process.end):
            found = {nominal}
            for index in range(len(self.links)):
                found = {needed for one in found for needed in needs(index, one)}
            if max(found, default=nominal - timedelta(1)) >= nominal:
                return SelfWait(nominal, max(found))
        return None


ZONES = ["UTC", "America/New_York", "Asia/Beirut"]
STARTS = ["2013-03-07T00:00Z", "2013-03-08T05:00Z", "2013-03-08T06:30Z", "2013-11-01T04:00Z"]
FREQUENCIES = ["hours(1)", "hours(6)", "hours(5)", "minutes(90)", "days(1)", "days(2)"]
ENDS = ["now(0,0)", "now(-1,0)", "now(0,-30)", "now(-6,0)", "now(-24,0)", "now(1,0)", "today(0,0)", "yesterday(0,0)"]
ENDS += ["yesterday(23,0)", "currentMonth(0,0,0)", "lastWeek(SUN,0,0)", "dateOffset(now(0,0),-1,'DAY')", "latest(0)"]
WRITTEN = ["now(0,0)", "today(0,0)", "now(1,0)", "yesterday(0,0)", "now(-6,0)"]


@st.composite
def rings(draw: st.DrawFn, longest: int) -> Ring:
    zone = draw(st.sampled_from(ZONES))
    links = []
    for _ in range(draw(st.integers(1, longest))):
        start = draw(st.sampled_from(STARTS))
        process = timeline(draw(st.sampled_from(FREQUENCIES)), start, draw(st.integers(1, 8)), zone)
        feed = timeline(
            draw(st.sampled_from(FREQUENCIES)), draw(st.sampled_from(STARTS)), 9, draw(st.sampled_from(ZONES))
        )
        end = draw(st.sampled_from(ENDS))
        first = draw(st.sampled_from([end, "lastMonth(0,0,0)", "now(-48,0)"]))
        links.append((process, first, end, feed, draw(st.sampled_from(WRITTEN))))
    return Ring(tuple(links))


@given(rings(longest=1))
def test_of_one_process_it_is_exact(ring: Ring) -> None:
    expected = ring.first_self_wait()
    event(f"waits: {expected is not None}")
    assert first_self_wait(ring.way()) == expected


@given(rings(longest=3))
def test_what_is_allowed_is_safe(ring: Ring) -> None:
    if first_self_wait(ring.way()) is None:
        event(f"allowed, {len(ring.links)} processes")
        assert ring.first_self_wait() is None


@given(
    st.lists(st.tuples(st.integers(-3, 1), st.integers(-1, 1)), min_size=2, max_size=4),
    st.sampled_from(["hours(1)", "hours(5)"]),
)
def test_of_several_that_step_together_it_is_exact(shifts: list[tuple[int, int]], frequency: str) -> None:
    line, hours = timeline(frequency, "2013-01-01T00:00Z", 3), Frequency.parse(frequency).count
    links = tuple(
        (line, f"now({read * hours},0)", f"now({read * hours},0)", line, f"now({written * hours},0)")
        for read, written in shifts
    )
    ring = Ring(links)
    assert (first_self_wait(ring.way()) is None) == (ring.first_self_wait() is None)


FOR_EVER = timedelta(days=365 * 100)


@pytest.mark.parametrize(
    ("process", "read", "written", "zone", "expected"),
    [
        pytest.param("days(1)", "yesterday(0,0)", "today(0,0)", "America/New_York", None, id="days"),
        pytest.param("days(1)", "now(-24,0)", "now(0,0)", "America/New_York", None, id="absolute-days"),
        pytest.param("minutes(5)", "now(0,-5)", "now(0,0)", "UTC", None, id="minutes"),
        pytest.param("months(1)", "lastMonth(0,0,0)", "currentMonth(0,0,0)", "Europe/Berlin", None, id="months"),
        pytest.param("minutes(1)", "now(0,0)", "now(0,0)", "UTC", "2013-01-01T00:00Z", id="itself"),
        pytest.param("hours(1)", "yesterday(23,0)", "now(0,0)", "America/New_York", None, id="hours-of-yesterday"),
        # On the day of 25 hours the last of them looks back at its own day.
        pytest.param("hours(1)", "now(-24,0)", "today(0,0)", "America/New_York", "2013-11-04T04:00Z", id="long-day"),
    ],
)
def test_long_validities(process: str, read: str, written: str, zone: str, expected: str | None) -> None:
    begin = parse_instant("2013-01-01T00:00Z")
    own = Timeline(begin, begin + FOR_EVER, Frequency.parse(process), zone)
    midnight = parse_instant("2012-01-01T05:00Z")
    daily = Timeline(midnight, midnight + FOR_EVER, Frequency.parse("days(1)"), zone)
    feed = daily if written == "today(0,0)" and process == "hours(1)" else own
    found = first_self_wait((Read(own, feed, call(read), call(read), zone), Write(feed, own, call(written), zone)))
    assert (found and format_instant(found.nominal)) == expected


def test_over_a_copy() -> None:
    here, there = timeline("hours(1)", "2013-01-01T00:00Z"), timeline("hours(1)", "2013-01-02T00:00Z")
    for hours, expected in ((-1, None), (0, SelfWait(there.start, there.start))):
        read = Read(there, here, call(f"now({hours},0)"), call(f"now({hours},0)"), "UTC")
        way = (read, Copied(here, there), Write(there, there, call("now(0,0)"), "UTC"))
        assert first_self_wait(way) == expected


def test_what_is_to_come_is_not_earlier() -> None:
    line = timeline("hours(1)", "2013-01-01T00:00Z")
    way = (
        Read(line, line, call("future(0,3)"), call("future(1,3)"), "UTC"),
        Write(line, line, call("now(0,0)"), "UTC"),
    )
    assert first_self_wait(way) == SelfWait(line.start, parse_instant("2013-01-01T02:00Z"))
