from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from falcon_assets.errors import ExpressionError
from falcon_assets.model.instant import Instant, format_instant, parse_instant

minutes = st.datetimes().map(lambda naive: naive.replace(second=0, microsecond=0, tzinfo=UTC))


@given(minutes)
def test_what_is_printed_is_read_back(moment):
    assert parse_instant(format_instant(moment)) == moment


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2013, 1, 3, 6, tzinfo=UTC), "2013-01-03T06:00Z"),
        (datetime(2013, 1, 3, 6, 5, 59, tzinfo=UTC), "2013-01-03T06:05Z"),
        (datetime(2013, 1, 3, 6, tzinfo=timezone(timedelta(hours=2))), "2013-01-03T04:00Z"),
        (datetime(7, 1, 3, 6, tzinfo=UTC), "0007-01-03T06:00Z"),
    ],
)
def test_printing(moment, text):
    assert format_instant(moment) == text


@pytest.mark.parametrize(
    "text",
    ["", "2013-01-01", "2013-01-01T00:00", "2013-01-01T00:00:00Z", "2013-1-1T00:00Z", "2013-02-29T00:00Z",
     "2013-01-01T24:00Z", "0000-01-01T00:00Z", "2013-01-01 00:00Z", "2013-01-01T00:00+02:00", "٢٠١٣-01-01T00:00Z"],
)  # fmt: skip
def test_anything_else_is_refused(text):
    with pytest.raises(ExpressionError) as caught:
        parse_instant(text)
    assert str(caught.value) == (
        f"{text!r} is not an instant: write YYYY-MM-DDTHH:MMZ (UTC), for example 2013-01-01T00:00Z"
    )


def test_as_a_field():
    adapter = TypeAdapter(Instant)
    moment = datetime(2013, 1, 3, 6, tzinfo=UTC)
    assert adapter.validate_python("2013-01-03T06:00Z") == moment
    assert adapter.validate_python(moment.astimezone(timezone(timedelta(hours=5)))).utcoffset() == timedelta()
    assert adapter.dump_python(moment) == "2013-01-03T06:00Z"
