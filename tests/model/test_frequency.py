from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from falcon_assets.errors import ExpressionError
from falcon_assets.model.frequency import Frequency, TimeUnit


@given(st.integers(1, 999_999), st.sampled_from(TimeUnit))
def test_what_is_printed_is_read_back(count, unit):
    frequency = Frequency(count, unit)
    assert Frequency.parse(str(frequency)) == frequency


@pytest.mark.parametrize(
    "text",
    ["", "hours", "hours()", "hours(0)", "hours(00)", "hours(-1)", "hours(1.5)", "Hours(1)", "weeks(1)", "hours(1)x",
     "hours(1000000)", "hours(١)", "0 * * * *"],
)  # fmt: skip
def test_anything_else_is_refused(text):
    with pytest.raises(ExpressionError) as caught:
        Frequency.parse(text)
    assert str(caught.value) == (
        f"{text!r} is not a frequency: write minutes(n), hours(n), days(n) or months(n) with a whole n > 0"
    )


@pytest.mark.parametrize(
    ("text", "length", "is_absolute"),
    [
        ("minutes(45)", timedelta(minutes=45), True),
        ("hours(5)", timedelta(hours=5), True),
        ("days(2)", timedelta(days=2), False),
        ("months(2)", timedelta(days=60), False),
        ("  days(1) ", timedelta(days=1), False),
    ],
)
def test_lengths(text, length, is_absolute):
    frequency = Frequency.parse(text)
    assert (frequency.length, frequency.is_absolute) == (length, is_absolute)


def test_as_a_field():
    adapter = TypeAdapter(Frequency)
    assert adapter.validate_python("days(1)") == adapter.validate_python(Frequency(1, TimeUnit.DAYS))
    assert adapter.dump_python(Frequency(1, TimeUnit.DAYS)) == "days(1)"
    assert adapter.json_schema()["pattern"] == r"^(minutes|hours|days|months)\([1-9][0-9]*\)$"
    with pytest.raises(ValidationError, match=r"'5' is not a frequency"):
        adapter.validate_python(5)
