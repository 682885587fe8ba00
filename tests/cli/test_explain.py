from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from falcon_assets.history.database import upsert
from falcon_assets.history.platform.open_ledger import ledger_engine
from falcon_assets.history.tables import DEFINITION_VERSIONS, ENTITY_STATUS
from falcon_assets.settings import Settings
from falcon_assets.surface.cli.explain import explain

ENTITIES = """
kind: cluster
name: primary
colo: east
interfaces: {write: {endpoint: data/primary}, execute: {endpoint: "local[1]"}}
properties: {bucket: flights}
---
kind: cluster
name: backup
interfaces: {write: {endpoint: data/backup}, execute: {endpoint: "local[1]"}}
properties: {bucket: copies}
---
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
properties: {month: "${formatTime(instanceTime(),'MMM yyyy')}", pattern: "g[ab] [/x]"}
---
kind: feed
name: ticks
frequency: minutes(1)
locations: {data: "/ticks/${YEAR}/${MONTH}/${DAY}/${HOUR}${MINUTE}"}
clusters: [{name: primary, validity: {start: 1950-01-01T00:00Z, end: "9999-12-31T23:59Z"}}]
---
kind: process
name: newest
clusters: [{name: primary, validity: {start: 1950-01-01T00:00Z, end: "9999-12-31T23:59Z"}}]
frequency: hours(1)
inputs:
  - {name: last, feed: ticks, start: latest(-1), end: latest(0)}
  - {name: next, feed: ticks, start: "future(0,99999999)", end: "future(0,99999999)", optional: true}
workflow: {engine: spark-sql, path: a.sql}
"""


@pytest.fixture(scope="module")
def call(settings: Settings, write_entities: Callable[[dict[str, str]], Path]) -> Callable[..., Result]:
    write_entities({"all.yaml": ENTITIES, "a.sql": "SELECT 1"})
    there = settings.home / "data/primary/flights/primary/2013-01-01/22"
    there.mkdir(parents=True)
    (there / "_SUCCESS").touch()
    return lambda *arguments: CliRunner().invoke(explain, arguments)


def test_json_says_everything(call: Callable[..., Result], settings: Settings) -> None:
    result = call("roll-up", "2013-01-02T00:00Z", "--cluster", "primary", "--json")
    root = f"{settings.home}/data/primary"
    assert json.loads(result.output) == {
        "process": "roll-up",
        "cluster": "primary",
        "instance": "2013-01-02T00:00Z",
        "definition": None,
        "inputs": [
            {
                "name": "hours",
                "feed": "raw",
                "instances": ["2013-01-01T22:00Z", "2013-01-01T23:00Z"],
                "paths": [f"{root}/flights/primary/2013-01-01/22", f"{root}/flights/primary/2013-01-01/23"],
                "available": [True, False],
            }
        ],
        "outputs": [
            {"name": "day", "feed": "daily", "instance": "2013-01-01T00:00Z", "path": f"{root}/daily/2013-01-01"}
        ],
        "properties": {
            "bucket": "flights",
            "cluster.name": "primary",
            "cluster.colo": "east",
            "month": "Jan 2013",
            "nominalTime": "2013-01-02T00:00Z",
            "nominal_time": "2013-01-02T00:00Z",
            "pattern": "g[ab] [/x]",
            "process.name": "roll-up",
        },
        "alone": "its input raw declares no schema, so each instance may have other columns",
    }


def test_tables_say_the_same_to_people(call: Callable[..., Result], settings: Settings) -> None:
    result = call("roll-up", "2013-01-02T00:00Z", "--cluster", "backup")
    assert result.exit_code == 0
    assert result.output.startswith("roll-up on backup at 2013-01-02T00:00Z")
    whole = str(settings.home / "data/backup/copies/backup/2013-01-01/23")  # in one line: it is copied from there
    for word in ("Reads", "Writes", "Parameters", "2013-01-01T23:00Z", "Jan 2013", whole, "g[ab] [/x]"):
        assert word in result.output


def test_latest_is_found_however_long_ago(call: Callable[..., Result], settings: Settings) -> None:
    """Of decades of minutes: asking for each of them would take an hour."""
    result = call("newest", "2040-01-01T00:00Z")
    assert result.exit_code == 0
    said = " ".join(result.output.replace("│", " ").replace("┃", " ").split())
    assert "latest(-1) to latest(0) no: not enough instances are available" in said
    times = ["1970-05-01T10:31Z", "1951-01-01T00:00Z"]
    for path in ("1970/05/01/1031", "1951/01/01/0000"):
        (settings.home / "data/primary/ticks" / path).mkdir(parents=True)
    last, following = json.loads(call("newest", "2040-01-01T00:00Z", "--json").output)["inputs"]
    assert (last["instances"], following["instances"]) == (times[::-1], [])
    (settings.home / "data/primary/ticks/2077/01/01/0000").mkdir(parents=True)
    _, following = json.loads(call("newest", "2040-01-01T00:00Z", "--json").output)["inputs"]
    assert following["instances"] == ["2077-01-01T00:00Z"]


def test_what_is_no_instant_is_said(call: Callable[..., Result]) -> None:
    result = call("roll-up", "2013-01-02", "--cluster", "primary")
    said = "'2013-01-02' is not an instant: write YYYY-MM-DDTHH:MMZ (UTC), for example 2013-01-01T00:00Z"
    assert result.output.endswith(f"Error: Invalid value for 'INSTANCE': {said}\n")


def test_the_version_of_the_definition_is_said(call: Callable[..., Result], settings: Settings) -> None:
    open_engine = ledger_engine(settings)
    said = {"text": "", "text_hash": "", "workflow_hash": None, "operation": "load", "actor": "", "reason": ""}
    since = datetime(2013, 1, 3, tzinfo=UTC)
    with open_engine.begin() as connection:
        rows = [
            {"kind": "process", "name": "roll-up", "version": n, "since": since.replace(day=n), **said} for n in (3, 5)
        ]
        upsert(connection, DEFINITION_VERSIONS, rows)
        status = {"kind": "process", "name": "roll-up", "status": "RUNNING", "commanded": True, "since": since}
        upsert(connection, ENTITY_STATUS, [{**status, "scheduled_since": since}])
    output = call("roll-up", "2013-01-02T00:00Z", "--cluster", "primary").output
    assert "It has version 3 of the definition; this is what the latest, 5, says." in output
    data = json.loads(call("roll-up", "2013-01-05T00:00Z", "--cluster", "primary", "--json").output)
    assert data["definition"] == 5
    open_engine.dispose()
