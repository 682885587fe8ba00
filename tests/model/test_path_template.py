from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from falcon_assets.errors import ExpressionError
from falcon_assets.model.feed import Locations
from falcon_assets.model.frequency import Frequency
from falcon_assets.model.path_template import PathTemplate

FULL = "/a.b/${YEAR}/${MONTH}-${DAY}/${cluster.colo}/${HOUR}${MINUTE}/${YEAR}"
VALUES = {"cluster.colo": "e.st"}


@given(st.datetimes().map(lambda wall: wall.replace(second=0, microsecond=0)))
def test_a_path_maps_back(wall):
    template = PathTemplate.parse(FULL)
    assert template.match(template.render(wall, VALUES), VALUES) == wall


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/a.b/2013/01-02/e.st/0304/2014",
        "/axb/2013/01-02/e.st/0304/2013",
        "/a.b/2013/01-02/exst/0304/2013",
        "/a.b/2013/01-02/e.st/0304/2013/",
        "/a.b/2013/01-02/e.st/0304/2013\n",
        "/a.b/2013/02-30/e.st/0304/2013",
        "/a.b/0000/01-02/e.st/0304/0000",
        "/a.b/2013/01-02/e.st/2404/2013",
        "/a.b/٢٠١٣/01-02/e.st/0304/٢٠١٣",
    ],
)
def test_what_does_not_match_exactly_is_none(path):
    assert PathTemplate.parse(FULL).match(path, VALUES) is None


def test_missing_fields_mean_the_earliest_time():
    assert PathTemplate.parse("/a/${YEAR}").match("/a/2013", {}) == datetime(2013, 1, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("/a/s3://b/${YEAR}", "'://' stands only after the scheme of a whole URL"),
        ("s3://b/file:///x", "'://' stands only after the scheme of a whole URL"),
        ("simplecache::s3://b/${YEAR}", "'://' stands only after the scheme of a whole URL"),
        ("://b/${YEAR}", "'://' stands only after the scheme of a whole URL"),
        ("file://host/x", "'file://host/x' needs three slashes: file:///folder"),
        ("s3://a/../b", "a path must not contain '..'"),
        ("s3://key:hunter2@b/x", "a location must not hold credentials: name them in storage_options"),
    ],
)
def test_urls_that_are_none(text, message):
    with pytest.raises(ExpressionError) as caught:
        PathTemplate.parse(text)
    assert message in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        ("/a/b/${YEAR}/${MONTH}", "/a/b"),
        ("/a/b-${YEAR}", "/a"),
        ("/a/${cluster.colo}/${YEAR}", "/a/e.st"),
        ("/a/b/", "/a/b"),
        ("${YEAR}", ""),
    ],
)
def test_fixed_prefix(text, prefix):
    assert PathTemplate.parse(text).fixed_prefix(VALUES) == prefix


@pytest.mark.parametrize(
    ("frequency", "missing"),
    [
        ("months(12)", ()),
        ("months(1)", ("MONTH",)),
        ("days(7)", ("MONTH", "DAY")),
        ("hours(24)", ("MONTH", "DAY")),
        ("hours(5)", ("MONTH", "DAY", "HOUR")),
        ("minutes(120)", ("MONTH", "DAY", "HOUR")),
        ("minutes(45)", ("MONTH", "DAY", "HOUR", "MINUTE")),
    ],
)
def test_missing_variables(frequency, missing):
    assert PathTemplate.parse("/a/${YEAR}").missing_for(Frequency.parse(frequency)) == missing


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" ", "a path template must not be empty"),
        ("/a/${now(0,0)}", "'/a/${now(0,0)}': only variables may stand in a path, not now(...)"),
        ("/a/../b", "'/a/../b': a path must not contain '..'"),
        ("/a/${YEAR", "'/a/${YEAR': a '${' is not closed"),
    ],
)
def test_exact_messages(text, message):
    with pytest.raises(ExpressionError) as caught:
        PathTemplate.parse(text)
    assert str(caught.value) == message


def test_an_unknown_variable_names_the_nearest():
    with pytest.raises(ExpressionError) as caught:
        PathTemplate.parse("/a/${cluster.color}").render(datetime(2013, 1, 1), VALUES)
    assert str(caught.value) == (
        "'/a/${cluster.color}': unknown variable '${cluster.color}' (did you mean 'cluster.colo'?)"
    )


def test_as_a_field():
    template = PathTemplate.parse("/a/${YEAR}")
    assert Locations(data=template).data is template
    assert Locations.model_validate({"data": "/a/${YEAR}"}).model_dump()["data"] == "/a/${YEAR}"
    assert TypeAdapter(PathTemplate).json_schema() == {"type": "string"}
