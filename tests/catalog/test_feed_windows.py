"""The bisection of the window check against looking at every process instance."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.catalog.checks.windows import FeedWindows
from falcon_assets.model.frequency import Frequency
from falcon_assets.model.process import Input
from falcon_assets.planning.input_windows import input_instances
from falcon_assets.planning.timeline import Timeline
from tests.properties import examples

_ZONES = st.sampled_from(["UTC", "Europe/Berlin"])
_FREQUENCIES = st.sampled_from(["minutes(45)", "hours(1)", "hours(5)", "days(1)", "days(2)", "months(1)"])
_HOURS = st.integers(-200, 200)
_TIMES = st.one_of(
    st.builds("now({},0)".format, _HOURS),
    st.builds("today({},0)".format, _HOURS),
    st.builds("lastWeek(TUE,{},0)".format, _HOURS),
    st.builds("currentMonth({},0,0)".format, st.integers(-40, 40)),
)


@st.composite
def timelines(draw: st.DrawFn) -> Timeline:
    start = datetime(2013, 3, 20, tzinfo=UTC) + timedelta(hours=draw(st.integers(0, 24 * 30)))
    end = start + timedelta(hours=draw(st.integers(1, 24 * 10)))
    return Timeline(start, end, Frequency.parse(draw(_FREQUENCIES)), draw(_ZONES))


@examples(300)
@given(timelines(), timelines(), _TIMES, _TIMES)
def test_windows_hold_some_exactly_where_all_of_them_say_so(
    process: Timeline, feed: Timeline, start: str, end: str
) -> None:
    declared = Input(name="x", feed="f", start=start, end=end)  # type: ignore[arg-type]
    windows = FeedWindows(declared.start.call, declared.end.call, process, feed, process.timezone)
    nominals = [process.instance(k) for k in range(process.count)]
    having = [bool(input_instances(declared, feed, nominal, process.timezone)) for nominal in nominals]
    assert [windows.has_instances(k) for k in range(process.count)] == having
    met = windows.candidates()
    assert any(having) == (bool(met) and any(windows.has_instances(k) for k in met))
    if windows.is_always_inverted(met) and process.count <= 200:
        assert not any(having)
