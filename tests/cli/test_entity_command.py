from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Engine, create_engine, delete, select, text

from falcon_assets.cli.entity import entity
from falcon_assets.ledger.tables import ENTITY_STATUS
from falcon_assets.ledger.upgrade import upgrade
from falcon_assets.settings import Settings
from tests.processes import FALCON
from tests.waiting import wait_until

ENTITIES = """
kind: cluster
name: primary
interfaces: {write: {endpoint: data/primary}, execute: {endpoint: "local[1]"}}
---
kind: feed
name: raw
frequency: hours(1)
locations: {data: "/raw/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
---
kind: feed
name: both
frequency: hours(1)
locations: {data: "/both/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
---
kind: process
name: both
schedule: true
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
frequency: hours(1)
inputs: [{name: rows, feed: raw, start: "now(0,0)", end: "now(0,0)"}]
outputs: [{name: out, feed: both, instance: "now(0,0)"}]
workflow: {engine: spark-sql, path: a.sql}
"""


@pytest.fixture(scope="module")
def ledger(settings: Settings, write_entities: Callable[[dict[str, str]], Path]) -> Iterator[Engine]:
    write_entities({"all.yaml": ENTITIES, "a.sql": "SELECT 1"})
    engine = create_engine(settings.database_url or "")
    upgrade(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def call(ledger: Engine, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Calls the command at six o'clock; nothing was commanded yet."""
    monkeypatch.setenv("FALCON_CLOCK", "2013-01-03T06:00Z")
    with ledger.begin() as connection:
        connection.execute(delete(ENTITY_STATUS))
    return lambda *arguments: CliRunner().invoke(entity, arguments)


def listed(call: Callable[..., Result], *arguments: str) -> list[dict[str, Any]]:
    result = call("list", "--json", *arguments)
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.output)
    return found


def row(kind: str, name: str, status: str, hour: int = 6, *, commanded: bool = False) -> dict[str, Any]:
    since = f"2013-01-03T{hour:02}:00:00Z"
    return {"kind": kind, "name": name, "status": status, "since": since, "commanded": commanded}


def test_list_says_what_is_declared(call: Callable[..., Result]) -> None:
    process = row("process", "both", "RUNNING")
    assert listed(call) == [row("feed", "raw", "SUBMITTED"), row("feed", "both", "SUBMITTED"), process]
    assert listed(call, "--kind", "process") == [process]
    lines = [line.strip("│ ").split() for line in call("list").output.splitlines()]
    assert ["process", "│", "both", "│", "RUNNING", "│", "2013-01-03T06:00:00Z", "│", "declared"] in lines


def test_an_entity_is_scheduled_suspended_and_resumed(
    call: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    story = [
        ("schedule", "feed raw is RUNNING now, it was SUBMITTED\n"),
        ("suspend", "feed raw is SUSPENDED now, it was RUNNING\n"),
        ("suspend", "feed raw is SUSPENDED already (since 2013-01-03T08:00:00Z, commanded): nothing to do\n"),
        ("resume", "feed raw is RUNNING now, it was SUSPENDED\n"),
        ("schedule", "feed raw is RUNNING already (since 2013-01-03T10:00:00Z, commanded): nothing to do\n"),
    ]
    for hour, (command, said) in enumerate(story, 7):
        monkeypatch.setenv("FALCON_CLOCK", f"2013-01-03T{hour:02}:00Z")
        result = call(command, "raw")
        assert (result.exit_code, result.output) == (0, said)
    assert listed(call, "--kind", "feed")[0] == row("feed", "raw", "RUNNING", 10, commanded=True)


def test_of_two_commands_at_once_one_finds_it_done_and_an_error_exits_with_1(
    call: Callable[..., Result], ledger: Engine, settings: Settings
) -> None:
    """Both processes have to wait for the row; then the second one sees what the first one did."""

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = (FALCON, "entity", "suspend", *arguments)
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=settings.home)

    call("schedule", "raw")
    with ledger.begin() as holder:
        holder.execute(select(ENTITY_STATUS).where(ENTITY_STATUS.c.name == "raw").with_for_update())
        both = [start("raw") for _ in range(2)]
        wrong = start("both", "--kind", "feed")
        until_blocked(ledger, 2)
    said = sorted(one.communicate(timeout=60)[0] for one in both)
    assert said == [
        "feed raw is SUSPENDED already (since 2013-01-03T06:00:00Z, commanded): nothing to do\n",
        "feed raw is SUSPENDED now, it was RUNNING\n",
    ]
    assert [one.returncode for one in both] == [0, 0]
    out, err = wrong.communicate(timeout=60)
    message = "Error: feed 'both': what is SUBMITTED cannot be suspended\n"
    assert (wrong.returncode, out, err) == (1, "", message)


def until_blocked(engine: Engine, number: int) -> None:
    """Waits until that many connections of this database wait for a lock."""
    statement = text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )

    def blocked() -> bool:
        with engine.connect() as connection:
            return connection.execute(statement).scalar_one() == number

    wait_until(blocked, 60, f"{number} that wait")
