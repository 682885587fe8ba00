from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from falcon_assets.model.expression import parse_expression
from falcon_assets.model.frequency import Frequency
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.expressions import evaluate_time
from falcon_assets.planning.timeline import Timeline
from falcon_assets.planning.window_offsets import index_shift
from tests.builders import make_feed, make_process, workload_of
from tests.zones import ZONES

EXPRESSIONS = ["now(0,0)", "now(-3,30)", "now(-24,0)", "today(0,0)", "today(12,0)", "yesterday(0,0)", "instanceTime()"]
EXPRESSIONS += ["currentMonth(0,0,0)", "lastMonth(14,0,0)", "currentWeek(MON,0,0)", "currentYear(1,0,0,0)"]


@given(
    st.sampled_from(["hours(1)", "hours(5)", "days(1)", "days(7)", "months(1)"]),
    st.sampled_from(ZONES),
    st.tuples(*[st.datetimes(parse_instant("2012-12-01T00:00Z").replace(tzinfo=None)).map(lambda at: at.hour)] * 2),
    st.sampled_from(EXPRESSIONS),
)
def test_it_is_what_each_instance_says(frequency: str, zone: str, hours: tuple[int, int], expression: str) -> None:
    start, other = (parse_instant("2013-03-01T00:00Z") + timedelta(hours=hour) for hour in hours)
    end = start + timedelta(days=400)
    nominal = Timeline(start, end, Frequency.parse(frequency), zone)
    feed = Timeline(other, end, Frequency.parse(frequency), zone)
    call = parse_expression(expression)
    shift = index_shift(nominal, feed, call, zone)
    event(f"constant: {shift is not None}")
    if shift is not None:
        indexes = [
            feed.index_at_or_before(evaluate_time(call, nominal.instance(k), zone)) - k
            for k in range(min(nominal.count, 400))
        ]
        assert set(indexes) == {shift}


@pytest.mark.parametrize("expression", ["now(0,0)", "today(0,0)"])
def test_a_process_at_six_writes_the_feed_of_midnight(expression: str) -> None:
    at = {"start": "2013-01-01T06:00Z", "end": "2014-01-01T00:00Z"}
    process = make_process(
        frequency="days(1)",
        clusters=[{"name": "primary", "validity": at}],
        inputs=[],
        outputs=[{"name": "out", "feed": "daily", "instance": expression}],
    )
    feed = make_feed(name="daily", frequency="days(1)")
    partitions = workload_of(process, feed).partitions
    nominal, midnight = parse_instant("2013-01-05T06:00Z"), parse_instant("2013-01-05T00:00Z")
    assert (partitions.partition_of(nominal), partitions.nominal_of(midnight)) == (midnight, nominal)
