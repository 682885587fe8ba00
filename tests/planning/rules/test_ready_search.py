from __future__ import annotations

from datetime import timedelta
from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.instances.rules.ready_search import intersection
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.input_windows import InstanceSet
from falcon_assets.planning.timeline import feed_timeline
from tests.builders import make_feed
from tests.planning.rules.test_readiness import CLOCK_FREQUENCIES, WINDOWS, on, readiness, timed
from tests.properties import examples


@st.composite
def searches(draw):
    """A process that reads one or two feeds, and which of their instances are there."""
    own = draw(st.one_of(timed(), timed(CLOCK_FREQUENCIES)))
    declared, feeds, available = [], [], {}
    for name in ["one", "two"][: draw(st.integers(1, 2))]:
        feed = make_feed(name=name, **draw(st.one_of(timed(), timed(CLOCK_FREQUENCIES))))
        declared.append((name, name, *draw(st.sampled_from(WINDOWS))))
        feeds.append(feed)
        line = feed_timeline(feed, "primary")
        # Long stretches that are there, and single ones that are missing, and the other way round.
        edges = sorted(draw(st.sets(st.integers(0, line.count), max_size=12)))
        there = draw(st.booleans())
        some = chain(*(range(*pair) for pair in list(pairwise([0, *edges, line.count]))[there::2]))
        stray = {line.start + timedelta(minutes=1), line.end + timedelta(days=400)} if draw(st.booleans()) else set()
        available[name] = InstanceSet({*map(line.instance, some), *stray})
    return readiness(*declared, feeds=feeds, **own), available


@examples(100)
@given(searches(), st.data())
def test_it_finds_what_lacks_nothing(search, data):
    ready, available = search
    line = ready.workload.timeline
    first = data.draw(st.integers(0, line.count))
    asked = range(first, min(first + data.draw(st.sampled_from([1, 60, 700])), line.count))
    earlier = data.draw(st.sets(st.integers(0, first - 1), max_size=3)) if first else ()
    single = [range(k, k + 1) for k in sorted(earlier)]
    expected = [k for k in chain(*single, asked) if not any(ready.missing(line.instance(k), available))]
    for _ in range(2):  # what it remembers is no other answer
        assert list(chain(*ready.ready([*single, asked], available))) == expected


@pytest.mark.parametrize("zone", ["Pacific/Apia", "America/New_York", "UTC"])
@pytest.mark.parametrize("window", [WINDOWS[0], ("yesterday(0,0)", "today(0,0)"), ("now(-26,0)", "now(0,0)")])
def test_also_around_days_that_a_zone_left_out(zone, window):
    days = {"frequency": "days(1)", "timezone": zone, "clusters": on("2011-12-20T10:00Z", "2012-01-10T00:00Z")}
    ready = readiness(("one", "one", *window), feeds=[make_feed(name="one", **days)], **days)
    line = ready.workload.timeline
    for without in range(line.count):
        available = {"one": InstanceSet(set(line.until(line.end)) - {line.instance(without)})}
        expected = [k for k in range(line.count) if not any(ready.missing(line.instance(k), available))]
        assert list(chain(*ready.ready([range(line.count)], available))) == expected


def test_nothing_is_ready_beyond_the_calendar():
    ends = on("9000-01-01T00:00Z", "9999-12-31T00:00Z")
    ready = readiness(
        ("one", "one", "today(0,0)", "today(48,0)"),
        feeds=[make_feed(name="one", clusters=ends)],
        frequency="days(1)",
        timezone="Asia/Tokyo",
        clusters=ends,
    )
    line = ready.workload.timeline
    first, last = parse_instant("9990-01-01T00:00Z"), parse_instant("9999-12-20T00:00Z")
    assert ready.ready([line.indexes(first, last)], {}) == []


STEPS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5)), max_size=5)


@given(STEPS, STEPS)
def test_intersection(ones, others):
    def spans(steps):
        at, found = 0, []
        for gap, length in steps:
            found.append(range(at + gap, at + gap + length))
            at += gap + length
        return found

    both = sorted(set(chain(*spans(ones))) & set(chain(*spans(others))))
    assert list(chain(*intersection(spans(ones), spans(others)))) == both
