"""Triage of a roll-up sees through it, at any depth, to why each of its members is missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from falcon_assets.features.completeness.operations import report_parts
from falcon_assets.features.completeness.records import ReportedPart
from falcon_assets.features.landing.collector import Collector
from falcon_assets.features.rollups.passes import RollupPass
from falcon_assets.model.instant import parse_instant
from tests.features.landing.snapshot_tables import said
from tests.operations.opening import OpenAt

_ON = "clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]"


def _feed(name: str, frequency: str, keys: str) -> str:
    return f"---\nkind: feed\nname: {name}\nfrequency: {frequency}\n{keys}\n{_ON}\n"


def _path(name: str) -> str:
    return f'locations: {{data: "/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}-${{MINUTE}}"}}'


ENTITIES = (
    'kind: cluster\nname: primary\ninterfaces: {write: {endpoint: data}, execute: {endpoint: "local[1]"}}\n'
    + _feed("odd-clicks", "minutes(30)", f"completeness: {{at_least: 99, expected: reported}}\n{_path('clicks')}")
    + _feed("odd-bots", "hours(1)", _path("bots"))
    + _feed("odd-hourly", "hours(1)", "rollup: {of: [odd-clicks, odd-bots]}")
    + _feed("odd-daily", "days(1)", "rollup: {of: [odd-hourly]}")
    + f"""---
kind: process
name: finding-bots
frequency: hours(1)
{_ON}
outputs: [{{name: bots, feed: odd-bots, instance: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: a.sql}}
---
kind: process
name: reading-days
frequency: days(1)
{_ON}
inputs: [{{name: days, feed: odd-daily, start: "now(0,0)", end: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: a.sql}}
schedule: true
"""
)


def _below(cause: dict[str, Any]) -> list[dict[str, Any]]:
    causes: list[dict[str, Any]] = cause["causes"]
    return causes


def test_each_missing_member_has_its_own_cause(
    open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A share that is too low, a process that was never scheduled, and what has not come yet."""
    write_entities({"all.yaml": ENTITIES, "a.sql": "SELECT 1"})
    with open_at("2013-01-01T01:15Z") as installation:
        store, first = installation.entities, parse_instant("2013-01-01T00:00Z")
        folder = installation.settings.home / "data/clicks/2013-01-01-00-00"
        folder.mkdir(parents=True)
        (folder / "part.parquet").touch()
        came = [ReportedPart("hub", "1", 50, 50), ReportedPart("hub", "2", None, 50)]
        report_parts(installation, "odd-clicks", first, came)
        Collector(store, store.cluster("primary"), installation.settings).collect(installation.ledger, 60)
        RollupPass(store, "primary", installation.settings).record(installation.ledger)
        found = json.loads(said("instance", "triage", "odd-daily", "2013-01-01T00:00Z", "--json"))
        assert (found["state"], found["reason"]["kind"]) == ("MISSING", "members_missing")
        hours = {one["instance"]: one for one in _below(found)}
        hour = hours["2013-01-01T00:00Z"]
        assert (hour["entity"], hour["reason"]["kind"]) == ("odd-hourly", "members_missing")
        members = {(one["entity"], one["instance"]): one for one in _below(hour)}
        incomplete = members["odd-clicks", "2013-01-01T00:00Z"]["reason"]["text"]
        assert incomplete == "has 50 % of 99 %, part 2 of hub is missing since 2013-01-01T01:15Z"
        assert members["odd-clicks", "2013-01-01T00:30Z"]["reason"]["kind"] == "not_arrived"
        (bots,) = _below(members["odd-bots", "2013-01-01T00:00Z"])
        assert (bots["entity"], bots["reason"]["kind"]) == ("finding-bots", "not_scheduled")
        assert bots["fix"] == "falcon entity schedule finding-bots --kind process"
        process = json.loads(said("instance", "triage", "reading-days", "2013-01-01T00:00Z", "--json"))
        (day,) = _below(process)
        assert (day["entity"], _below(day)) == ("odd-daily", _below(found))
