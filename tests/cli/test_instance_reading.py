"""``falcon instance list|status|running|summary|search|params|dependency``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from falcon_assets.settings import Settings
from falcon_assets.surface.cli.instance import instance
from falcon_assets.surface.cli.main import main
from tests.operations.entities import RETAINED as ENTITIES


@pytest.fixture
def call(
    settings: Settings, write_entities: Callable[[dict[str, str]], Path], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    monkeypatch.setenv("FALCON_CLOCK", "2013-01-01T05:30Z")
    monkeypatch.chdir(settings.home)
    write_entities({"all.yaml": ENTITIES, "a.sql": "SELECT 1"})
    return lambda *arguments: CliRunner().invoke(instance, arguments)


def listed(call: Callable[..., Result], *arguments: str) -> dict[str, Any]:
    result = call(*arguments, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.output)
    return found


def test_a_list_in_parts(call: Callable[..., Result]) -> None:
    first = listed(call, "list", "--limit", "1")
    second = listed(call, "list", "--limit", "1", "--after", first["next"])
    assert [one["instance"] for one in (*first["items"], *second["items"])] == [
        "2013-01-01T01:00Z",
        "2013-01-01T02:00Z",
    ]
    assert (first["total"], second["total"], second["next"]) == (2, 2, None)
    assert first["items"][0]["reason"]["kind"] == "inputs_missing"


def test_a_table_says_why_and_how_it_goes_on(call: Callable[..., Result]) -> None:
    result = call("list", "reader", "--limit", "1")
    assert result.exit_code == 0, result.output
    assert "reader" in result.output
    assert "WAITING" in result.output
    assert "waits for rows: raw 2013-01-01T01:00Z" in result.output
    assert "1 of 2 instances: --limit shows more, filters fewer; --json says how to go on (next)" in result.output


def test_an_empty_list_says_so(call: Callable[..., Result]) -> None:
    assert call("list", "--filter", "state=FAILED").output == "no instance fits\n"


def test_a_feed_that_is_not_copied_has_other_ways(call: Callable[..., Result]) -> None:
    said = call("list", "raw").exception
    assert str(said) == (
        "feed 'raw' is not replicated to a cluster: there are no instances to run; "
        "its own instances: falcon instance list raw --type feed"
    )


def test_status_running_search_and_summary(call: Callable[..., Result]) -> None:
    latest = listed(call, "status", "reader")["items"]
    assert [one["instance"] for one in latest] == ["2013-01-01T02:00Z", "2013-01-01T01:00Z"]
    (alone,) = listed(call, "status", "reader", "--start", "2013-01-01T01:00Z")["items"]
    assert alone == latest[1]
    assert listed(call, "running") == {"items": [], "total": 0, "next": None}
    assert listed(call, "search", "READ")["total"] == 2
    assert listed(call, "summary") == {
        "items": [{"entity": "reader", "kind": "process", "cluster": "primary", "states": {"WAITING": 2}}],
        "total": 1,
        "next": None,
    }
    assert "WAITING" in call("summary", "reader").output


def test_params_and_dependency(call: Callable[..., Result], settings: Settings) -> None:
    (status,) = listed(call, "status", "reader", "--start", "2013-01-01T01:00Z")["items"]
    found = listed(call, "params", "reader", "2013-01-01T01:00Z")
    told = found.pop("params")
    assert found == status
    assert told["nominalTime"] == "2013-01-01T01:00Z"
    assert "nominalTime" in call("params", "reader", "2013-01-01T01:00Z").output
    assert listed(call, "params", "reader", "--start", "2013-01-01T01:00Z")["params"] == told  # as Falcon has it
    found = listed(call, "dependency", "reader", "2013-01-01T01:00Z", "--cluster", "primary")
    inputs, outputs = found.pop("inputs"), found.pop("outputs")
    assert found == status
    place = str(settings.home / "data" / "primary")
    there = {"instance": "2013-01-01T01:00Z"}
    path = f"{place}/raw/2013-01-01/01"
    assert inputs == [{"name": "rows", "feed": "raw", **there, "path": path, "available": False, "optional": False}]
    assert outputs == [{"name": "out", "feed": "kept", **there, "path": f"{place}/kept/2013-01-01/01"}]
    shown = call("dependency", "reader", "2013-01-01T02:00Z").output
    assert ("reads" in shown, "writes" in shown) == (True, True)


MISTAKES: dict[str, tuple[list[str], int, str]] = {
    "end before start": (
        ["list", "--start", "2013-01-02T00:00Z", "--end", "2013-01-01T00:00Z"],
        2,
        "it is before --start 2013-01-02T00:00Z",
    ),
    "field": (["list", "--filter", "colour=red"], 2, "there is no field 'colour'"),
    "order": (["list", "--sort", "state"], 2, "there is: entity, instance"),
    "instant": (["list", "--start", "today"], 2, "Error: "),
    "kind": (["list", "--filter", "kind=job"], 2, "Error: there is no kind 'job'; there is: process, replication"),
    "kind of feeds": (["list", "--type", "feed", "--filter", "kind=process"], 2, "there is no kind 'process'"),
    "cluster": (["list", "--filter", "cluster=nowhere"], 2, "Error: there is no cluster 'nowhere'"),
    "state": (["list", "--filter", "state=DONE"], 2, "Error: there is no state DONE"),
    "next": (["list", "--after", "x"], 2, "Error: 'x' is not the `next` of a list"),
    "name": (["status", "rader"], 1, "(did you mean 'reader'?)"),
    "params of nothing": (["params", "reader"], 2, "Missing argument INSTANCE"),
    "params of two": (["params", "reader", "2013-01-01T01:00Z", "--start", "2013-01-01T02:00Z"], 2, "give one of both"),
    "params of no instance": (["params", "reader", "2013-01-01T01:30Z"], 1, "has no instance 2013-01-01T01:30Z"),
    "dependency of a feed": (["dependency", "raw", "2013-01-01T01:00Z"], 1, "Error: "),
    "no such instance": (["status", "reader", "--start", "2013-01-01T01:30Z"], 1, "reader has no instance"),
}


@pytest.mark.parametrize(("arguments", "code", "text"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes(
    call: Callable[..., Result],
    arguments: list[str],
    code: int,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["falcon", "instance", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == code
    assert text in capsys.readouterr().err


def test_instances_of_feeds(call: Callable[..., Result]) -> None:
    found = listed(
        call, "list", "raw", "--type", "feed", "--cluster", "primary", "--filter", "state=missing", "--limit", "1"
    )
    assert found["total"] == 6
    assert found["items"][0]["feed"]["path"] == "/raw/2013-01-01/00"
    shown = call("status", "raw", "--type", "feed", "--limit", "1").output
    assert "MISSING" in shown
    assert "has not landed" in shown
    counts = listed(call, "summary", "raw", "--type", "feed")["items"]
    assert [one["states"] for one in counts] == [{"MISSING": 6}] * 2
    assert listed(call, "search", "RA", "--type", "feed")["total"] == 12
    one = ("dependency", "raw", "2013-01-01T01:00Z", "--type", "feed", "--cluster", "primary")
    assert [reader["entity"] for reader in listed(call, *one)["will_read"]] == ["reader"]
    assert "to be read by" in call(*one).output
