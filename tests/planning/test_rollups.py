"""Members of roll-ups, against a search by hand over random frequencies, zones and validities."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.model.frequency import Frequency
from falcon_assets.model.wall_clock import to_wall
from falcon_assets.planning.rollups import Membership, version_of
from falcon_assets.planning.timeline import Timeline

ZONES = ("UTC", "Asia/Shanghai", "Asia/Karachi", "America/Los_Angeles", "Europe/Berlin", "Australia/Lord_Howe")
FINE = ("minutes(5)", "minutes(45)", "hours(1)", "days(1)")
COARSE = ("minutes(15)", "hours(1)", "hours(5)", "days(1)", "days(2)", "months(1)")
starts = st.datetimes(datetime(2013, 1, 1), datetime(2013, 12, 1)).map(
    lambda at: at.replace(minute=0, second=0, microsecond=0, tzinfo=UTC)
)


def line(frequency: str, zone: str, start: datetime, days: int) -> Timeline:
    return Timeline(start, start + timedelta(days=days), Frequency.parse(frequency), zone)


@st.composite
def memberships(draw: st.DrawFn) -> Membership:
    start = draw(starts)
    rollup = line(draw(st.sampled_from(COARSE)), draw(st.sampled_from(ZONES)), start, draw(st.integers(1, 40)))
    later = start + timedelta(hours=draw(st.integers(-72, 72)))
    return Membership(rollup, line(draw(st.sampled_from(FINE)), draw(st.sampled_from(ZONES)), later, 4))


def by_hand(of: Membership, instance: datetime) -> list[datetime]:
    """Every instance of the member that lies in the period."""
    rollup, member = of.rollup, of.member
    index = rollup.index_at_or_before(instance)
    if rollup.timezone == member.timezone:
        first, end = rollup.instance(index), rollup.instance(index + 1)
        return [one for one in member.until(member.end) if first <= one < end]
    clock = rollup.wall if not rollup.frequency.is_absolute else lambda k: to_wall(rollup.instance(k), rollup.timezone)
    return [one for one in member.until(member.end) if clock(index) <= to_wall(one, member.timezone) < clock(index + 1)]


@given(memberships(), st.data())
def test_members_are_those_in_the_period(of: Membership, data: st.DataObject) -> None:
    instances = of.rollup.until(of.rollup.end)
    instance = data.draw(st.sampled_from(instances))
    assert of.members(instance) == by_hand(of, instance)


@given(memberships(), st.data())
def test_a_span_has_the_members_of_all_its_instances(of: Membership, data: st.DataObject) -> None:
    instances = of.rollup.until(of.rollup.end)
    first, last = sorted((data.draw(st.sampled_from(instances)), data.draw(st.sampled_from(instances))))
    begin, end = of.span(first, last)
    assert all(begin <= one <= end for at in instances if first <= at <= last for one in by_hand(of, at))


@given(memberships(), st.data())
def test_the_way_back_is_the_same(of: Membership, data: st.DataObject) -> None:
    one = data.draw(st.sampled_from(of.member.until(of.member.end)))
    near = [k for k in of.rollup.until(of.rollup.end) if abs(k - one) < timedelta(days=35)]
    assert of.rollups(one) == [instance for instance in near if one in of.members(instance)]


@pytest.mark.parametrize(
    ("zone", "start", "member"),
    [
        ("Asia/Shanghai", "2013-03-08T16:00", "2013-03-09T16:00"),
        ("Asia/Karachi", "2013-03-08T19:00", "2013-03-09T19:00"),
        ("UTC", "2013-03-09T00:00", "2013-03-10T00:00"),
        ("America/Los_Angeles", "2013-03-09T08:00", "2013-03-10T08:00"),
    ],
)
def test_a_day_of_the_world_has_the_day_of_each_region(zone: str, start: str, member: str) -> None:
    """On the tenth of March clocks in Los Angeles go forward."""
    world = line("days(1)", "UTC", datetime(2013, 3, 9, tzinfo=UTC), 5)
    region = line("days(1)", zone, datetime.fromisoformat(start).replace(tzinfo=UTC), 5)
    of = Membership(world, region)
    tenth, its_own = datetime(2013, 3, 10, tzinfo=UTC), datetime.fromisoformat(member).replace(tzinfo=UTC)
    assert of.members(tenth) == [its_own]
    assert of.rollups(its_own) == [tenth]


def test_versions_do_not_depend_on_the_order() -> None:
    hour = datetime(2013, 1, 1, tzinfo=UTC)
    some = [("a", hour, "1"), ("a", hour + timedelta(hours=1), "1"), ("b", hour, "2")]
    assert version_of(some) == version_of(reversed(some)) != version_of(some[:2])
