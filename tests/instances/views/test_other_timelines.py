"""What came to be by another frequency: it is kept and said to be so, and nothing is computed into it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from falcon_assets.errors import UnknownInstanceError
from falcon_assets.instances.operations.rerunning import RerunOptions, rerun_instances
from falcon_assets.instances.operations.selection import InstanceRequest
from falcon_assets.instances.views.listing import list_instances
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.installation import Installation
from tests.operations.rows import feed_row, process_row, write

START = parse_instant("2013-04-02T00:00Z")
SPAN = "validity: {start: 2013-04-02T00:00Z, end: 2014-01-01T00:00Z}"
EVERY_TWO_HOURS = f"""
kind: cluster
name: primary
interfaces: {{write: {{endpoint: data/primary}}, execute: {{endpoint: "local[1]"}}}}
---
kind: feed
name: raw
frequency: hours(2)
locations: {{data: "/raw/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{{name: primary, {SPAN}, retention: {{limit: hours(3)}}}}]
---
kind: process
name: make
frequency: hours(2)
clusters: [{{name: primary, {SPAN}}}]
inputs: [{{name: rows, feed: raw, start: "now(0,0)", end: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: a.sql}}
"""
OFF = (
    "is kept unchanged, and is not an instance of the present definition: its frequency is hours(2), and the nearest "
    "ones are 2013-04-02T00:00Z and 2013-04-02T02:00Z"
)


@pytest.fixture
def hourly_before(installed: Callable[[str], Installation]) -> Installation:
    """Two hours came to be by ``hours(1)``: of the feed, and of the process."""
    installation = installed(EVERY_TWO_HOURS)
    hours = (START, START + timedelta(hours=1))
    write(installation, *(feed_row("raw", one, run_id="r") for one in hours))
    write(installation, *(process_row("make", one, "SUCCEEDED") for one in hours))
    return installation


@pytest.mark.parametrize("kind", ["process", "feed"])
def test_lists_say_that_it_is_none_of_the_present_definition(hourly_before: Installation, kind: str) -> None:
    name = "make" if kind == "process" else "raw"
    span = {"start": START, "end": START + timedelta(hours=1)}
    on, off = list_instances(hourly_before, InstanceQuery(name, kind, **span)).as_data()["items"]  # type: ignore[arg-type]
    assert on["reason"] is None
    assert off["reason"]["text"] == OFF
    if kind == "feed":
        assert on["feed"]["expires_at"]
        assert off["feed"]["expires_at"] is None  # retention goes by the present instances


def test_nothing_is_computed_into_it(hourly_before: Installation) -> None:
    both = InstanceQuery("make", start=START, end=START + timedelta(hours=1))
    result = rerun_instances(hourly_before, InstanceRequest(both, None, ""), RerunOptions(force=True))
    assert [one.instance.instance for one in result.items if one.changed] == [START]
    assert f"1 instance is left alone: make 2013-04-02T01:00Z {OFF}" in result.notes
    alone = InstanceQuery("make", start=START + timedelta(hours=1))
    with pytest.raises(UnknownInstanceError, match="'make' on cluster 'primary' has no instance 2013-04-02T01:00Z"):
        rerun_instances(hourly_before, InstanceRequest(alone, None, ""), RerunOptions(force=True))
