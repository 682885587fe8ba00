from __future__ import annotations

import pytest

from falcon_assets.errors import ExpressionError
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.interpolate import interpolate

VALUES = {"cluster.colo": "east", "threshold": "15", "nested": "${threshold}"}


def fill(text: str) -> str:
    return interpolate(text, VALUES, parse_instant("2013-01-04T03:00Z"), "America/New_York", "etl")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("plain $5 {x}", "plain $5 {x}"),
        ("${cluster.colo}/${ threshold }", "east/15"),
        ("${nested}", "${threshold}"),
        ("${today(0,0)}", "2013-01-03T05:00Z"),
        ("${formatTime(today(0,0),'yyyy-MM-dd')}-${user()}", "2013-01-03-etl"),
    ],
    ids=["empty", "literal", "variables", "values are not looked into", "a time", "texts"],
)
def test_holes(text, expected):
    assert fill(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a ${treshold}", "'a ${treshold}': unknown variable '${treshold}' (did you mean 'threshold'?)"),
        ("${latest(0)}", "latest(...) gives available instances, not a time"),
        ("${now(0,0)", "'${now(0,0)': a '${' is not closed"),
    ],
)
def test_exact_messages(text, message):
    with pytest.raises(ExpressionError) as caught:
        fill(text)
    assert str(caught.value) == message
