"""``falcon instance rerun|kill|suspend|resume``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from falcon_assets.settings import Settings
from falcon_assets.surface.cli.instance import instance
from tests.operations.entities import RETAINED as ENTITIES

ONE = ("reader", "--start", "2013-01-01T01:00Z")


@pytest.fixture
def call(
    settings: Settings, write_entities: Callable[[dict[str, str]], Path], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    monkeypatch.setenv("FALCON_CLOCK", "2013-01-01T05:30Z")
    monkeypatch.chdir(settings.home)
    write_entities({"all.yaml": ENTITIES, "a.sql": "SELECT 1"})
    return lambda *arguments: CliRunner().invoke(instance, arguments)


def test_an_instance_is_held_back_goes_on_ends_and_runs_again(call: Callable[..., Result]) -> None:
    for name, before, state in (
        ("suspend", "WAITING", "SUSPENDED"),
        ("resume", "SUSPENDED", "WAITING"),
        ("kill", "WAITING", "KILLED"),
        ("rerun", "KILLED", "WAITING"),
    ):
        planned = call(name, *ONE, "--dry-run")
        assert planned.exit_code == 0, planned.output
        assert "reader on primary 2013-01-01T01:00Z would be" in planned.output
        assert f"it is {before}" in planned.output
        told = call(name, *ONE, "--reason", "why not")
        assert told.exit_code == 0, told.output
        assert f"reader on primary 2013-01-01T01:00Z is {state}" in told.output
        again = call(name, *ONE)
        assert again.exit_code == 0, again.output
        assert again.output.startswith("nothing to do\n0 instances ")


def test_json_says_what_became_of_each(call: Callable[..., Result]) -> None:
    result = call("kill", "reader", "--start", "2013-01-01T01:00Z", "--end", "2013-01-01T02:00Z", "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.output)
    said = ("operation", "reason", "dry_run", "changed", "total", "next", "notes")
    assert {key: data[key] for key in said} == {
        "operation": "kill",
        "reason": "",
        "dry_run": False,
        "changed": sum(one["changed"] for one in data["items"]),
        "total": 2,
        "next": None,
        "notes": [],
    }
    assert {one["state"] for one in data["items"]} == {"KILLED"}


def test_which_instances_must_be_said(call: Callable[..., Result]) -> None:
    result = call("kill", "reader")
    assert (result.exit_code, "Say which instances: give --start" in result.output) == (2, True)
    assert call("kill", "reader", "--status", "LOST").exit_code == 2
