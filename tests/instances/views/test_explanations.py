"""Inputs, outputs and parameters of one process instance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from falcon_assets.errors import FalconError
from falcon_assets.instances.views.explain import (
    ExplainedInput,
    ExplainedInstance,
    ExplainedOutput,
    Explanation,
    explain,
)
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.settings import Settings
from tests.builders import cluster_yaml

ENTITIES = (
    cluster_yaml("primary", colo="east", properties={"bucket": "flights"})
    + cluster_yaml("backup", properties={"bucket": "copies"})
    + """---
kind: feed
name: raw
frequency: hours(1)
availability_flag: _SUCCESS
locations: {data: "/${bucket}/${cluster.name}/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
clusters:
  - {name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}
  - {name: backup, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}
---
kind: feed
name: daily
frequency: days(1)
locations: {data: "/daily/${YEAR}-${MONTH}-${DAY}"}
clusters:
  - {name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}
  - {name: backup, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}
---
kind: process
name: roll-up
clusters:
  - {name: primary, validity: {start: 2013-01-02T00:00Z, end: 2014-01-01T00:00Z}}
  - {name: backup, validity: {start: 2013-01-02T00:00Z, end: 2014-01-01T00:00Z}}
frequency: days(1)
inputs: [{name: hours, feed: raw, start: "yesterday(22,0)", end: "yesterday(23,0)"}]
outputs: [{name: day, feed: daily, instance: "yesterday(0,0)"}]
workflow: {engine: spark-sql, path: a.sql}
properties: {month: "${formatTime(instanceTime(),'MMM yyyy')}", password: secret}
"""
)


DAY = parse_instant("2013-01-02T00:00Z")


@pytest.fixture(scope="module")
def installation(settings: Settings, write_entities: Callable[[dict[str, str]], Path]) -> Iterator[Installation]:
    write_entities({"all.yaml": ENTITIES, "a.sql": "SELECT 1"})
    there = settings.home / "data/primary/flights/primary/2013-01-01/22"
    there.mkdir(parents=True)
    (there / "_SUCCESS").touch()
    with open_installation(settings) as opened:
        yield opened


def test_everything_is_said_but_secrets(installation: Installation, settings: Settings) -> None:
    root = f"{settings.home}/data/primary"
    read = [
        ExplainedInstance(
            parse_instant(f"2013-01-01T{hour}:00Z"), f"{root}/flights/primary/2013-01-01/{hour}", hour == 22
        )
        for hour in (22, 23)
    ]
    assert explain(installation, "roll-up", DAY, "primary") == Explanation(
        "roll-up",
        "primary",
        DAY,
        (ExplainedInput("hours", "raw", False, tuple(read)),),
        (ExplainedOutput("day", "daily", parse_instant("2013-01-01T00:00Z"), f"{root}/daily/2013-01-01"),),
        {
            "bucket": "flights",
            "cluster.name": "primary",
            "cluster.colo": "east",
            "month": "Jan 2013",
            "nominalTime": "2013-01-02T00:00Z",
            "nominal_time": "2013-01-02T00:00Z",
            "password": "*****",
            "process.name": "roll-up",
        },
        alone="its input raw declares no schema, so each instance may have other columns",
    )


WRONG = {
    "no such process": (
        ("roll-upp", "2013-01-02T00:00Z"),
        "there is no process 'roll-upp' (did you mean 'roll-up'?)",
    ),
    "several clusters": (
        ("roll-up", "2013-01-02T00:00Z"),
        "process 'roll-up' runs on several clusters: say which one with --cluster (primary, backup)",
    ),
    "not on that cluster": (
        ("roll-up", "2013-01-02T00:00Z", "other"),
        "process 'roll-up' does not run on cluster 'other'; it runs on: primary, backup",
    ),
    "not an instance": (
        ("roll-up", "2013-01-02T05:00Z", "primary"),
        "process 'roll-up' on cluster 'primary' has no instance 2013-01-02T05:00Z: its frequency is days(1), and the "
        "nearest ones are 2013-01-02T00:00Z and 2013-01-03T00:00Z",
    ),
    "before the validity": (
        ("roll-up", "2013-01-01T00:00Z", "primary"),
        "process 'roll-up' on cluster 'primary' has no instance 2013-01-01T00:00Z: its validity starts at "
        "2013-01-02T00:00Z",
    ),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG)
def test_wrong_questions_are_answered_in_a_sentence(
    installation: Installation, arguments: tuple[str, ...], message: str
) -> None:
    process, instance, *cluster = arguments
    with pytest.raises(FalconError) as caught:
        explain(installation, process, parse_instant(instance), *cluster)
    assert str(caught.value) == message
