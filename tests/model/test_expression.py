from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from falcon_assets.errors import ExpressionError
from falcon_assets.model.expression import Call, InstanceExpression, parse_expression
from falcon_assets.model.expression_functions import FUNCTIONS, OFFSET_UNITS, WEEKDAYS, Kind

numbers = st.integers(-99_999_999, 99_999_999)
plain = [
    name
    for name, function in FUNCTIONS.items()
    if set(function.arguments) == {Kind.NUMBER} and name not in ("latest", "future")
]
simple_calls = st.one_of(
    st.just(Call("instanceTime")),
    st.builds(Call, st.sampled_from(plain), st.none()).flatmap(
        lambda call: st.tuples(*[numbers] * len(FUNCTIONS[call.name].arguments)).map(lambda args: Call(call.name, args))
    ),
    st.builds(
        lambda name, day, hours, minutes: Call(name, (day, hours, minutes)),
        st.sampled_from(["currentWeek", "lastWeek"]),
        st.sampled_from(WEEKDAYS),
        numbers,
        numbers,
    ),
)
time_calls = st.recursive(
    simple_calls,
    lambda inner: st.builds(
        lambda base, number, unit: Call("dateOffset", (base, number, unit)),
        st.one_of(inner, st.just("2013-01-01T00:00Z")),
        numbers,
        st.sampled_from(OFFSET_UNITS),
    ),
    max_leaves=4,
)
calls = st.one_of(
    time_calls,
    st.just(Call("user")),
    st.builds(lambda feed: Call("watermark", (feed,)), st.text("ab-_", min_size=1)),
    st.builds(lambda moment, text: Call("formatTime", (moment, text)), time_calls, st.text("yMdHm-_/ ", max_size=12)),
    st.builds(lambda n: Call("latest", (-n,)), st.integers(0, 50)),
    st.integers(0, 50).flatmap(lambda n: st.builds(lambda more: Call("future", (n, n + more)), st.integers(1, 50))),
)


def write(arg, space=""):
    if isinstance(arg, Call):
        return f"{arg.name}{space}({space}{f'{space},{space}'.join(write(part, space) for part in arg.args)}{space})"
    if isinstance(arg, int) or arg in WEEKDAYS:
        return str(arg)
    return f"'{arg}'"


@given(calls, st.sampled_from(["", " ", "  \t"]))
def test_what_is_written_is_read_back(call, space):
    assert parse_expression(write(call, space)) == call


def test_every_function_is_tried():
    assert set(plain) | {
        "instanceTime", "currentWeek", "lastWeek", "dateOffset", "formatTime", "user", "latest", "future",
        "watermark",
    } == set(FUNCTIONS)  # fmt: skip


def test_calls_within_calls():
    call = parse_expression("formatTime(dateOffset(instanceTime(), -1, \"DAY\"), 'yyyy-MM-dd')")
    assert [inner.name for inner in call.calls()] == ["formatTime", "dateOffset", "instanceTime"]
    assert call.kind is Kind.TEXT


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it ends too early"),
        ("now", "'now' is neither a weekday (SUN, MON, TUE, WED, THU, FRI, SAT) nor a call"),
        ("7", "one function call is expected, for example now(0,0)"),
        ("SUN", "one function call is expected, for example now(0,0)"),
        ("now(0,0", "it ends too early"),
        ("now(0,", "it ends too early"),
        ("now(0,0))", "one function call is expected, for example now(0,0)"),
        ("now(0 0)", "the arguments of now are separated by commas"),
        ("now(,0)", "',' is not expected there"),
        ("now(0,0,)", "')' is not expected there"),
        ("now(0)", "now takes 2 argument(s), not 1"),
        ("now(0,0,0)", "now takes 2 argument(s), not 3"),
        ("now(0,'0')", "argument 2 of now must be a whole number, not '0'"),
        ("now(1234567890,0)", "1234567890 is too large a number"),
        ("today(now(0,0),0)", "argument 1 of today must be a whole number, not now(...)"),
        (
            "yesterdy(0,0)",
            "unknown function 'yesterdy' (did you mean 'yesterday'?); known: "
            "currentMonth, currentWeek, currentYear, dateOffset, formatTime, future, instanceTime, "
            "lastMonth, lastWeek, lastYear, latest, now, today, user, watermark, yesterday",
        ),
        ("currentWeek(1,0,0)", "argument 1 of currentWeek must be a weekday, SUN to SAT, not 1"),
        ("currentWeek(XXX,0,0)", "'XXX' is neither a weekday (SUN, MON, TUE, WED, THU, FRI, SAT) nor a call"),
        ("latest(1)", "latest(n) counts backwards: n must be 0 or negative"),
        ("future(-1,3)", "future(n,limit) takes n >= 0 and a limit greater than n"),
        ("future(3,3)", "future(n,limit) takes n >= 0 and a limit greater than n"),
        ("dateOffset(now(0,0),1,'WEEK')", "dateOffset counts in MINUTE, HOUR, DAY, MONTH, YEAR, not 'WEEK'"),
        ("dateOffset('2013',1,'DAY')", "argument 1 of dateOffset must be a time, not '2013'"),
        ("dateOffset(latest(0),1,'DAY')", "argument 1 of dateOffset must be a time, not latest(...)"),
        ("formatTime(now(0,0))", "formatTime takes 2 to 3 argument(s), not 1"),
        ("formatTime(now(0,0),user())", "argument 2 of formatTime must be written in quotes"),
        (
            "formatTime(now(0,0),'x','Mars')",
            "argument 3 of formatTime must be an IANA time zone, such as 'UTC', not 'Mars'",
        ),
        ("formatTime(user(),'x')", "argument 1 of formatTime must be a time, not user(...)"),
    ],
)
def test_exact_messages(text, why):
    with pytest.raises(ExpressionError) as caught:
        parse_expression(text)
    assert str(caught.value) == f"{text!r} is not a legal expression: {why}"


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("now(0.5,0)", ".5,0)"),
        ("now(١,0)", "١,0)"),
        ("formatTime(instanceTime(),'x", "'x"),
    ],
)
def test_exact_messages_of_unreadable_text(text, rest):
    with pytest.raises(ExpressionError) as caught:
        parse_expression(text)
    assert str(caught.value) == f"{text!r} is not an expression: cannot read {rest!r}"


def test_a_deep_nest_is_refused_and_not_a_stack_overflow():
    text = "dateOffset(" * 5000
    with pytest.raises(ExpressionError) as caught:
        parse_expression(text)
    assert str(caught.value) == f"an expression of 10000 words is too long: {text[:40]!r}..."


@given(st.text("nowtday(),' -+0123456789SUN\"", max_size=40))
def test_garbage_is_an_expression_error_or_nothing(text):
    with suppress(ExpressionError):
        parse_expression(text)


def test_weekdays_in_any_writing():
    assert parse_expression("currentWeek(sun,0,0)") == parse_expression("currentWeek('SUN',0,0)")


def test_as_a_field():
    adapter = TypeAdapter(InstanceExpression)
    expression = adapter.validate_python(" now(-1, 0) ")
    assert expression.call == Call("now", (-1, 0))
    assert adapter.validate_python(expression) is expression
    assert adapter.dump_python(expression) == "now(-1, 0)"
    assert adapter.json_schema()["type"] == "string"


def test_a_text_is_no_instance():
    with pytest.raises(ExpressionError) as caught:
        InstanceExpression.parse("user()")
    assert str(caught.value) == "'user()' gives a text; a time is expected, for example now(0,0)"
