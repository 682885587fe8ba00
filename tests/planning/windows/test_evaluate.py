from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from dateutil import relativedelta as rd
from dateutil.relativedelta import relativedelta
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.errors import ExpressionError
from falcon_assets.model.expression import Call, parse_expression
from falcon_assets.model.expression_functions import WEEKDAYS
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.planning.expressions import evaluate_text, evaluate_time, expression_bounds
from tests.zones import ZONES

moments = st.datetimes(datetime(2005, 1, 1), datetime(2030, 1, 1)).map(
    lambda naive: naive.replace(second=0, microsecond=0, tzinfo=UTC)
)
small = st.integers(-50, 50)
LATEST_DAY = dict(zip(WEEKDAYS, (rd.SU, rd.MO, rd.TU, rd.WE, rd.TH, rd.FR, rd.SA), strict=True))
MIDNIGHT = {"hour": 0, "minute": 0}
ANCHORS = {
    "today": relativedelta(**MIDNIGHT),
    "yesterday": relativedelta(days=-1, **MIDNIGHT),
    "currentMonth": relativedelta(day=1, **MIDNIGHT),
    "lastMonth": relativedelta(months=-1, day=1, **MIDNIGHT),
    "currentYear": relativedelta(month=1, day=1, **MIDNIGHT),
    "lastYear": relativedelta(years=-1, month=1, day=1, **MIDNIGHT),
}


def shown(moment: datetime, zone: str) -> datetime:
    return moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def localize(wall: datetime, zone: str) -> datetime:
    """The first moment at which clocks show ``wall``; where they never do, ``wall`` by the offset before the gap."""
    around = [wall.replace(tzinfo=UTC) + timedelta(hours=hours) for hours in (-30, 30)]
    candidates = [wall.replace(tzinfo=UTC) - moment.astimezone(ZoneInfo(zone)).utcoffset() for moment in around]
    hits = [moment for moment in candidates if shown(moment, zone) == wall]
    return min(hits) if hits else candidates[0]


@given(st.sampled_from(sorted(ANCHORS)), small, small, small, small, moments, st.sampled_from(ZONES))
def test_calendar_functions(name, months, days, hours, minutes, nominal, zone):
    args = {"t": (hours, minutes), "y": (hours, minutes), "h": (days, hours, minutes)}.get(name[-1], ())
    expected = shown(nominal, zone) + ANCHORS[name]
    if name in ("currentYear", "lastYear"):
        args = (months, days, hours, minutes)
        expected += relativedelta(months=months)
    elif name in ("today", "yesterday"):
        args = (hours, minutes)
    if len(args) > 2:
        expected += timedelta(days=days)
    expected += timedelta(hours=hours, minutes=minutes)
    assert evaluate_time(Call(name, args), nominal, zone) == localize(expected, zone)


@given(
    st.sampled_from(["currentWeek", "lastWeek"]),
    st.sampled_from(WEEKDAYS),
    small,
    small,
    moments,
    st.sampled_from(ZONES),
)
def test_weeks(name, day, hours, minutes, nominal, zone):
    anchor = shown(nominal, zone) + relativedelta(weekday=LATEST_DAY[day](-1), **MIDNIGHT)
    anchor -= timedelta(days=7 if name == "lastWeek" else 0)
    expected = localize(anchor + timedelta(hours=hours, minutes=minutes), zone)
    assert evaluate_time(Call(name, (day, hours, minutes)), nominal, zone) == expected


@given(small, small, moments, st.sampled_from(ZONES))
def test_now_is_absolute(hours, minutes, nominal, zone):
    assert evaluate_time(Call("now", (hours, minutes)), nominal, zone) == nominal + timedelta(
        hours=hours, minutes=minutes
    )


@given(small, st.sampled_from(["MINUTE", "HOUR", "DAY", "MONTH", "YEAR"]), moments, st.sampled_from(ZONES))
def test_date_offset(number, unit, nominal, zone):
    found = evaluate_time(Call("dateOffset", (Call("instanceTime"), number, unit)), nominal, zone)
    if unit in ("MINUTE", "HOUR"):
        assert found == nominal + timedelta(**{unit.lower() + "s": number})
    else:
        assert found == localize(shown(nominal, zone) + relativedelta(**{unit.lower() + "s": number}), zone)
    quoted = Call("dateOffset", (format_instant(nominal), number, unit))
    assert evaluate_time(quoted, nominal + timedelta(days=400), zone) == found


CALLS = [
    "now(-3,5)",
    "today(23,59)",
    "yesterday(-30,0)",
    "currentWeek(TUE,5,0)",
    "lastWeek(SUN,0,0)",
    "currentMonth(30,0,0)",
    "lastMonth(-3,0,0)",
    "currentYear(-7,40,0,0)",
    "lastYear(11,30,23,0)",
    "instanceTime()",
    "dateOffset(lastMonth(0,0,0),-5,'MONTH')",
    "dateOffset(instanceTime(),90,'DAY')",
    "dateOffset(today(0,0),-2,'YEAR')",
    "dateOffset(now(1,0),30,'MINUTE')",
    "dateOffset('2013-01-01T00:00Z',1,'DAY')",
]


@given(st.sampled_from(CALLS), moments, st.sampled_from(ZONES))
def test_bounds_hold(text, nominal, zone):
    call = parse_expression(text)
    low, high = expression_bounds(call)
    assert low <= evaluate_time(call, nominal, zone) - nominal <= high


def test_bounds_of_anything_at_all():
    assert expression_bounds(parse_expression("currentYear(99999999,99999999,0,0)"))[0] < timedelta(days=-200_000_000)


@pytest.mark.parametrize(
    ("expression", "zone", "expected"),
    [
        ("today(0,0)", "UTC", "2013-03-10T00:00Z"),
        ("today(0,0)", "America/New_York", "2013-03-10T05:00Z"),
        ("today(2,30)", "America/New_York", "2013-03-10T07:30Z"),
        ("today(23,0)", "America/New_York", "2013-03-11T03:00Z"),
        ("now(-12,0)", "America/New_York", "2013-03-10T00:00Z"),
        ("currentWeek(SUN,0,0)", "UTC", "2013-03-10T00:00Z"),
        ("currentWeek(MON,0,0)", "UTC", "2013-03-04T00:00Z"),
        ("lastWeek(MON,0,0)", "UTC", "2013-02-25T00:00Z"),
        ("lastMonth(0,0,0)", "America/New_York", "2013-02-01T05:00Z"),
        ("currentYear(1,28,0,0)", "UTC", "2013-03-01T00:00Z"),
        ("lastYear(1,28,0,0)", "UTC", "2012-02-29T00:00Z"),
        ("dateOffset('2013-03-31T00:00Z',-1,'MONTH')", "UTC", "2013-02-28T00:00Z"),
    ],
)
def test_at_noon_of_the_spring_change(expression, zone, expected):
    nominal = parse_instant("2013-03-10T12:00Z")
    assert format_instant(evaluate_time(parse_expression(expression), nominal, zone)) == expected


@pytest.mark.parametrize(("day", "hours"), [("2013-03-10", 23), ("2013-06-10", 24), ("2013-11-03", 25)])
def test_a_day_has_all_its_hours(day, hours):
    nominal = parse_instant(f"{day}T12:00Z")
    first, last = (
        evaluate_time(parse_expression(text), nominal, "America/New_York") for text in ("today(0,0)", "today(23,0)")
    )
    assert (last - first) / timedelta(hours=1) + 1 == hours


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("formatTime(instanceTime(),'yyyy-MM-dd')", "2013-01-03"),
        ("formatTime(now(0,0), 'yyyy-MM-dd HH:mm zzz')", "2013-01-03 22:05 EST"),
        ("formatTime(now(0,0), 'yyyy-MM-dd HH:mm', 'UTC')", "2013-01-04 03:05"),
        ("formatTime(now(0,0), \"yyyy-MM-dd'T'HH:mm:ss\")", "2013-01-03T22:05:00"),
        ("formatTime('2013-07-01T00:00Z', 'EEE d MMM yy')", "Sun 30 Jun 13"),
        ("formatTime(now(0,0), '')", ""),
        ("user()", "etl"),
    ],
)
def test_texts(expression, expected):
    nominal = parse_instant("2013-01-04T03:05Z")
    assert evaluate_text(parse_expression(expression), nominal, "America/New_York", "etl") == expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("formatTime(now(0,0),'short')", "'short' is not a date pattern: unknown letter(s) o, r, t"),
        ('formatTime(now(0,0),"yyyy\'T")', '"yyyy\'T" is not a date pattern: a quote is not closed'),
        ("formatTime(now(0,0),'FFF')", "'FFF' is not a date pattern: Invalid length for field: 'FFF'"),
        ("now(0,0)", "now(...) gives a time, not a text"),
        ("latest(0)", "latest(...) gives available instances, not a text"),
        ("formatTime(now(99999999,0),'yyyy')", "now(...) at 2013-01-04T03:05Z lies outside the years 1 to 9999"),
    ],
)
def test_exact_messages_of_texts(expression, message):
    with pytest.raises(ExpressionError) as caught:
        evaluate_text(parse_expression(expression), parse_instant("2013-01-04T03:05Z"), "UTC", "etl")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("latest(0)", "latest(...) gives available instances, not a time"),
        ("future(0,3)", "future(...) gives available instances, not a time"),
        ("user()", "user(...) gives a text, not a time"),
        *[
            (text, f"{text.partition('(')[0]}(...) at 2013-01-04T03:05Z lies outside the years 1 to 9999")
            for text in (
                "now(99999999,0)",
                "now(999999999,999999999)",
                "today(-99999999,0)",
                "currentMonth(9999999,0,0)",
                "currentMonth(999999999,999999999,0)",
                "currentYear(999999999,0,0,0)",
                "lastYear(-99999,0,0,0)",
                "dateOffset(now(0,0),9999,'YEAR')",
                "dateOffset(now(0,0),999999999,'DAY')",
                "dateOffset('9999-12-31T23:59Z',1,'MINUTE')",
            )
        ],
    ],
)
def test_exact_messages_of_times(expression, message):
    for zone in ("UTC", "Asia/Tokyo"):
        with pytest.raises(ExpressionError) as caught:
            evaluate_time(parse_expression(expression), parse_instant("2013-01-04T03:05Z"), zone)
        assert str(caught.value) == message
