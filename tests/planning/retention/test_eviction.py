from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from dateutil.relativedelta import relativedelta
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.model.frequency import Frequency
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.planning.eviction import (
    StoredInstance,
    StoredLocation,
    before,
    cadence,
    first_pass_over,
    pass_times,
    plan_eviction,
)
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.reasons_to_keep import KEEPS, Keeps, NeededByProcess, NotReplicated, needed_by_target
from falcon_assets.planning.timeline import feed_timeline
from tests.builders import make_cluster, make_feed
from tests.hours import HOUR

VALIDITY = {"start": "2010-01-01T00:00Z", "end": "2020-01-01T00:00Z"}
NOW = parse_instant("2013-03-31T12:00Z")
ARCHIVE = {"action": "archive", "archive_to": "/old/${cluster.colo}/${YEAR}/${MONTH}/${DAY}/${HOUR}"}


def paths_with(retention: dict[str, Any] | None, **overrides: Any) -> InstancePaths:
    entry = {"name": "primary", "validity": VALIDITY, **({"retention": retention} if retention else {})}
    return InstancePaths(make_feed(**{"clusters": [entry], **overrides}), make_cluster())


def stored(*moments: str | datetime, kind: Any = "data") -> list[StoredInstance]:
    nominal = [parse_instant(moment) if isinstance(moment, str) else moment for moment in moments]
    return [StoredInstance(moment, (StoredLocation(kind, "/raw", ""),)) for moment in nominal]


def plan(retention: dict[str, Any] | None, *moments: str | datetime, **more: Any) -> dict[str, tuple[str, str]]:
    """Nominal time -> action and reason."""
    verdicts = plan_eviction(paths_with(retention), stored(*moments), NOW, **more)
    return {format_instant(verdict.instance.nominal): (verdict.action, verdict.reason) for verdict in verdicts}


def test_what_is_older_than_the_limit_goes() -> None:
    assert plan({"limit": "hours(2)"}, "2013-03-31T10:00Z", "2013-03-31T09:00Z", "2013-03-31T12:00Z") == {
        "2013-03-31T09:00Z": ("delete", "older than hours(2)"),
        "2013-03-31T10:00Z": ("keep", "not older than hours(2)"),
        "2013-03-31T12:00Z": ("keep", "not older than hours(2)"),
    }


def test_without_retention_everything_stays() -> None:
    assert plan(None, "2010-01-01T00:00Z") == {"2010-01-01T00:00Z": ("keep", "no retention is declared")}


def test_months_are_those_of_the_calendar() -> None:
    """One month before 31 March is the end of February, not 30 days."""
    actions = plan({"limit": "months(1)"}, "2013-02-28T11:00Z", "2013-02-28T12:00Z", "2013-03-01T00:00Z")
    assert [action for action, _ in actions.values()] == ["delete", "keep", "keep"]


def test_days_are_those_of_the_zone() -> None:
    """Two days before midday on the day of the spring change are 47 hours."""
    for zone, hours in (("UTC", 48), ("America/New_York", 47)):
        now = parse_instant("2013-03-10T16:00Z")
        nominal = [now - hours * HOUR - HOUR, now - hours * HOUR]
        verdicts = plan_eviction(paths_with({"limit": "days(2)"}, timezone=zone), stored(*nominal), now)
        assert [verdict.action for verdict in verdicts] == ["delete", "keep"]


def test_archived_instances_get_a_path() -> None:
    old, young = plan_eviction(paths_with({"limit": "days(1)", **ARCHIVE}), stored("2013-03-01T05:00Z", NOW), NOW)
    assert (old.action, old.archive_to) == ("archive", "/old/east/2013/03/01/05")
    assert (young.action, young.archive_to) == ("keep", None)


@pytest.mark.parametrize(
    ("future", "verdict"),
    [
        ({}, ("keep", "dated after now (future: keep)")),
        ({"future": "keep"}, ("keep", "dated after now (future: keep)")),
        ({"future": "delete"}, ("delete", "dated after now (future: delete)")),
        ({"future": "delete", **ARCHIVE}, ("archive", "dated after now (future: delete)")),
    ],
    ids=["default", "keep", "delete", "archive"],
)
def test_instances_dated_after_now(future: dict[str, Any], verdict: tuple[str, str]) -> None:
    assert plan({"limit": "days(1)", **future}, NOW + HOUR) == {"2013-03-31T13:00Z": verdict}


def test_the_newest_stay_however_old() -> None:
    old = [f"2011-01-01T0{hour}:00Z" for hour in range(4)]
    verdicts = plan({"limit": "hours(1)", "keep_last": 2}, *old)
    reason = "one of the newest 2 (keep_last)"
    assert [verdicts[moment] for moment in old] == [("delete", "older than hours(1)")] * 2 + [("keep", reason)] * 2


def test_statistics_and_what_is_dated_after_now_are_not_among_the_newest() -> None:
    retention = {"limit": "hours(1)", "keep_last": 1, "future": "delete"}
    found = [*stored("2011-01-01T00:00Z", NOW + HOUR), *stored("2011-01-01T01:00Z", kind="stats")]
    actions = [verdict.action for verdict in plan_eviction(paths_with(retention), found, NOW)]
    assert actions == ["keep", "delete", "delete"]


def test_what_landed_late_has_its_minimum_age() -> None:
    landed = {
        parse_instant("2011-01-01T00:00Z"): NOW - 6 * HOUR,
        parse_instant("2011-01-01T01:00Z"): NOW - 5 * HOUR,
    }
    retention = {"limit": "hours(1)", "minimum_age": "hours(6)"}
    moments = [*landed, parse_instant("2011-01-01T02:00Z"), NOW - 3 * HOUR]
    assert plan(retention, *moments, landed=landed.get) == {
        "2011-01-01T00:00Z": ("delete", "older than hours(1)"),
        "2011-01-01T01:00Z": ("keep", "landed at 2013-03-31T07:00Z, less than hours(6) ago (minimum_age)"),
        "2011-01-01T02:00Z": ("delete", "older than hours(1)"),
        "2013-03-31T09:00Z": ("keep", "dated 2013-03-31T09:00Z, less than hours(6) ago (minimum_age)"),
    }


def test_what_is_needed_or_not_replicated_stays() -> None:
    first, second, third = (parse_instant(f"2011-01-01T0{hour}:00Z") for hour in range(3))
    needed = {first: NeededByProcess("hourly-delays", first, "has yet to run")}
    unreplicated = needed_by_target(
        "backup", feed_timeline(make_feed(clusters=[{"name": "primary", "validity": VALIDITY}]), "primary"), {third}
    )
    assert plan({"limit": "hours(1)"}, first, second, third, needs=[needed.get, unreplicated]) == {
        "2011-01-01T00:00Z": ("keep", "process hourly-delays 2011-01-01T00:00Z needs it: it has yet to run"),
        "2011-01-01T01:00Z": ("keep", "backup has not replicated it yet"),
        "2011-01-01T02:00Z": ("delete", "older than hours(1)"),
    }


def test_a_limit_before_the_calendar_began_keeps_everything() -> None:
    assert plan({"limit": "months(999999)"}, "2010-01-01T00:00Z") == {
        "2010-01-01T00:00Z": ("keep", "not older than months(999999)")
    }


FREQUENCIES = {
    "hours(23)": "hours(6)",
    "minutes(1439)": "hours(6)",
    "hours(24)": "hours(24)",
    "days(1)": "hours(24)",
    "months(3)": "hours(24)",
}


@pytest.mark.parametrize(("limit", "expected"), FREQUENCIES.items(), ids=FREQUENCIES)
def test_cadence_follows_the_limit(limit: str, expected: str) -> None:
    assert str(cadence(paths_with({"limit": limit}).feed, "primary")) == expected


def test_lifecycle_overrides_the_cadence() -> None:
    own = {"name": "primary", "validity": VALIDITY, "retention": {"limit": "days(9)"}}
    lifecycle = {"retention": {"frequency": "hours(2)"}}
    assert str(cadence(make_feed(lifecycle=lifecycle, clusters=[own]), "primary")) == "hours(2)"
    nearer = {**own, "lifecycle": {"retention": {"frequency": "minutes(90)"}}}
    assert str(cadence(make_feed(lifecycle=lifecycle, clusters=[nearer]), "primary")) == "minutes(90)"


def test_tables_are_passed_over_as_files_are() -> None:
    own = {"name": "primary", "validity": VALIDITY, "retention": {"limit": "days(9)"}}
    table = {"uri": "catalog:default:counts#ds=${YEAR}-${MONTH}-${DAY}-${HOUR}"}
    feed = make_feed(locations=None, availability_flag=None, table=table, clusters=[own])
    assert str(cadence(feed, "primary")) == "hours(24)"


def test_no_cadence_without_retention() -> None:
    assert cadence(paths_with(None).feed, "primary") is None
    assert cadence(paths_with({"limit": "days(1)"}).feed, "elsewhere") is None


@given(
    moment=st.datetimes(datetime(2000, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),
    count=st.integers(1, 100),
    unit=st.sampled_from(["minutes", "hours", "days", "months"]),
)
def test_before_is_what_dateutil_says(moment: datetime, count: int, unit: str) -> None:
    assert before(moment, Frequency.parse(f"{unit}({count})"), "UTC") == moment - relativedelta(**{unit: count})


@given(
    hours=st.sets(st.integers(-200, 50), max_size=40),
    limit=st.integers(1, 150),
    keep_last=st.none() | st.integers(1, 10),
    minimum_age=st.none() | st.integers(1, 100),
    future=st.sampled_from(["keep", "delete"]),
    landed=st.dictionaries(st.integers(-200, 50), st.integers(0, 100)),
    held=st.sets(st.integers(-200, 50)),
)
def test_the_rules_together(
    hours: set[int],
    limit: int,
    keep_last: int | None,
    minimum_age: int | None,
    future: str,
    landed: dict[int, int],
    held: set[int],
) -> None:
    """Against the rules in other words: one condition per line, over hours relative to now."""
    retention: dict[str, Any] = {"limit": f"hours({limit})", "future": future}
    retention |= {"keep_last": keep_last} if keep_last else {}
    retention |= {"minimum_age": f"hours({minimum_age})"} if minimum_age else {}
    came = {NOW + hour * HOUR: NOW - ago * HOUR for hour, ago in landed.items()}
    needs = [{NOW + hour * HOUR: NotReplicated("backup") for hour in held}.get]
    found = stored(*(NOW + hour * HOUR for hour in hours))
    verdicts = plan_eviction(paths_with(retention), found, NOW, needs, came.get)
    assert all(verdict.kept_by is None or str(verdict.kept_by) == verdict.reason for verdict in verdicts)
    gone = {(verdict.instance.nominal - NOW) // HOUR for verdict in verdicts if verdict.action != "keep"}
    past = sorted(hour for hour in hours if hour <= 0)
    assert gone == {
        hour
        for hour in hours
        if hour < -limit or (hour > 0 and future == "delete")
        if hour not in past[max(len(past) - (keep_last or 0), 0) :]
        if landed.get(hour, -hour) >= (minimum_age or -1000)
        if hour not in held
    }
    assert [verdict.instance.nominal for verdict in verdicts] == sorted(NOW + hour * HOUR for hour in hours)


def test_a_clock_that_was_set_back_does_not_make_data_evictable() -> None:
    """It is dated after now again; by the clock of its time it was not when it came."""
    came, early = NOW + HOUR, NOW + 2 * HOUR
    landed = {came: came + HOUR / 2, early: NOW - HOUR}
    assert plan({"limit": "days(1)", "future": "delete"}, came, early, landed=landed.get) == {
        "2013-03-31T13:00Z": ("keep", "landed at 2013-03-31T13:30Z, before the clock was set back"),
        "2013-03-31T14:00Z": ("delete", "dated after now (future: delete)"),
    }


def test_why_it_stays_is_there_as_data() -> None:
    came = {NOW - 3 * HOUR: NOW - HOUR}
    retention = {"limit": "hours(1)", "minimum_age": "hours(6)"}
    (young,) = plan_eviction(paths_with(retention), stored(NOW - 3 * HOUR), NOW, landed=came.get)
    assert young.kept_by is not None
    assert young.kept_by.as_data() == {
        "kind": "too_young",
        "text": "landed at 2013-03-31T11:00Z, less than hours(6) ago (minimum_age)",
        "landed": "2013-03-31T11:00Z",
        "dated": "2013-03-31T09:00Z",
        "minimum_age": "hours(6)",
    }
    (recent,) = plan_eviction(paths_with({"limit": "hours(6)"}), stored(NOW - 3 * HOUR), NOW)
    assert (recent.action, recent.kept_by) == ("keep", None)
    assert set(KEEPS) == set(Keeps.__subclasses__())


@given(
    nominal=st.datetimes(datetime(2013, 1, 1), datetime(2014, 1, 1), timezones=st.just(UTC)),
    limit=st.sampled_from(["hours(3)", "days(2)", "days(90)", "months(1)", "months(13)"]),
    zone=st.sampled_from(["UTC", "America/New_York"]),
)
def test_the_pass_that_takes_an_instance_is_the_first_that_finds_it_too_old(
    nominal: datetime, limit: str, zone: str
) -> None:
    entry = {"name": "primary", "validity": VALIDITY, "retention": {"limit": limit}}
    feed = make_feed(clusters=[entry], timezone=zone)
    at = first_pass_over(feed, "primary", nominal, nominal)
    every = cadence(feed, "primary")
    assert at
    assert every
    passes = pass_times(every)
    paths = InstancePaths(feed, make_cluster())
    actions = [
        plan_eviction(paths, stored(nominal), passes.instance(passes.index_at_or_before(at) + step))[0].action
        for step in (-1, 0)
    ]
    assert actions == ["keep", "delete"]


def test_what_is_dated_after_now_goes_with_the_next_pass() -> None:
    entry = {"name": "primary", "validity": VALIDITY, "retention": {"limit": "days(2)", "future": "delete"}}
    at = first_pass_over(make_feed(clusters=[entry]), "primary", parse_instant("2013-05-01T00:00Z"), NOW)
    assert at == parse_instant("2013-04-01T00:00Z")
    assert first_pass_over(make_feed(), "primary", NOW, NOW) is None
