from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Engine, create_engine, select

from falcon_assets.cli.retention import retention
from falcon_assets.errors import UnknownEntityError
from falcon_assets.ledger.tables import ENTITY_STATUS
from falcon_assets.ledger.upgrade import upgrade
from falcon_assets.settings import Settings

CLUSTER = """
kind: cluster
name: {name}
interfaces: {{write: {{endpoint: data/{name}}}, execute: {{endpoint: "local[1]"}}}}
---
"""
ENTITIES = (
    CLUSTER.format(name="primary")
    + CLUSTER.format(name="backup")
    + """
kind: feed
name: raw
frequency: hours(1)
schedule: true
locations: {data: "/raw/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
clusters:
  - name: primary
    validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}
    retention: {limit: hours(3)}
  - name: backup
    validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}
    retention: {limit: hours(2), action: archive, archive_to: "/old/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
---
kind: feed
name: kept
frequency: hours(1)
locations: {data: "/kept/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
---
kind: feed
name: linked
frequency: hours(1)
locations: {data: "/linked/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
clusters:
  - name: backup
    validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}
    retention: {limit: hours(3)}
---
kind: process
name: reader
schedule: true
clusters: [{name: primary, validity: {start: 2013-01-01T01:00Z, end: 2013-01-01T03:00Z}}]
frequency: hours(1)
inputs: [{name: rows, feed: raw, start: "now(0,0)", end: "now(0,0)"}]
outputs: [{name: out, feed: kept, instance: "now(0,0)"}]
workflow: {engine: spark-sql, path: a.sql}
"""
)


@pytest.fixture(scope="module")
def home(settings: Settings, write_entities: Callable[[dict[str, str]], Path]) -> Path:
    write_entities({"all.yaml": ENTITIES, "a.sql": "SELECT 1"})
    for cluster, feed in (("primary", "raw"), ("primary", "kept"), ("backup", "raw")):
        for hour in range(8):
            folder = settings.home / "data" / cluster / feed / "2013-01-01" / f"{hour:02}"
            folder.mkdir(parents=True)
            (folder / "part").write_text("x")
    (settings.home / "data" / "backup" / "linked").symlink_to(settings.home)
    return settings.home


@pytest.fixture(scope="module")
def ledger(settings: Settings, instance: dg.DagsterInstance) -> Iterator[Engine]:
    engine = create_engine(settings.database_url or "")
    upgrade(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def call(home: Path, ledger: Engine, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Calls ``falcon retention plan`` at six o'clock."""
    monkeypatch.setenv("FALCON_CLOCK", "2013-01-01T06:00Z")
    return lambda *arguments: CliRunner().invoke(retention, ["plan", *arguments])


def tree(home: Path) -> set[str]:
    return {str(Path(parent, name)) for parent, _, names in os.walk(home / "data") for name in names}


def planned(call: Callable[..., Result], *arguments: str) -> list[dict[str, Any]]:
    result = call("--json", *arguments)
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.output)
    return found


def fates(plan: dict[str, Any]) -> dict[int, tuple[str, str]]:
    return {int(one["instance"][11:13]): (one["action"], one["reason"]) for one in plan["instances"]}


def test_what_goes_what_stays_and_why(call: Callable[..., Result], home: Path, ledger: Engine) -> None:
    before = tree(home)
    (plan,) = planned(call, "--feed", "raw", "--cluster", "primary")
    assert (plan["feed"], plan["cluster"], plan["status"]) == ("raw", "primary", "RUNNING")
    needed = "process reader 2013-01-01T0{}:00Z needs it: it has yet to run"
    assert fates(plan) == {
        0: ("delete", "older than hours(3)"),
        1: ("keep", needed.format(1)),
        2: ("keep", needed.format(2)),
        **dict.fromkeys((3, 4, 5, 6), ("keep", "not older than hours(3)")),
        7: ("keep", "dated after now (future: keep)"),
    }
    assert plan["instances"][0]["paths"] == ["/raw/2013-01-01/00"]
    assert tree(home) == before
    with ledger.connect() as connection:
        assert connection.execute(select(ENTITY_STATUS)).all() == []


def test_archiving_and_another_time(call: Callable[..., Result]) -> None:
    (plan,) = planned(call, "--feed", "raw", "--cluster", "backup", "--as-of", "2013-01-01T03:00Z")
    assert fates(plan)[0] == ("archive", "older than hours(2)")
    assert plan["instances"][0]["archive_to"] == "/old/2013-01-01-00"
    assert fates(plan)[1] == ("keep", "not older than hours(2)")


def test_without_retention_a_feed_is_shown_when_asked_for(call: Callable[..., Result]) -> None:
    (plan,) = planned(call, "--feed", "kept")
    assert set(fates(plan).values()) == {("keep", "no retention is declared")}
    assert plan["status"] == "SUBMITTED"
    assert [(one["feed"], one["cluster"]) for one in planned(call, "--cluster", "primary")] == [("raw", "primary")]


def test_a_problem_is_said_and_delays_no_other(call: Callable[..., Result]) -> None:
    result = call()
    assert result.exit_code == 1
    assert "Error: linked on backup: cluster 'backup': '/linked' leaves the root" in result.output
    assert "raw on primary: 1 of 8 would go\n" in result.output
    assert "raw on backup: 4 of 8 would go\n" in result.output
    lines = [[cell.strip() for cell in line.strip("│ ").split("│")] for line in result.output.splitlines()]
    assert ["delete", "1", "2013-01-01T00:00Z", "2013-01-01T00:00Z", "older than"] in lines


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--feed", "raws"], "there is no feed 'raws' (did you mean 'raw'?)"),
        (["--feed", "kept", "--cluster", "backup"], "feed 'kept' is not on cluster 'backup'"),
    ],
    ids=["no-feed", "not-there"],
)
def test_unknown_names(call: Callable[..., Result], arguments: list[str], said: str) -> None:
    error = call(*arguments).exception
    assert isinstance(error, UnknownEntityError)
    assert str(error) == said
