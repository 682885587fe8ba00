"""``falcon instance collect``: what landed in the past is recorded now."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from falcon_assets.settings import Settings
from falcon_assets.surface.cli.instance import instance
from tests.operations.entities import COLLECTED as ENTITIES


@pytest.fixture(scope="module", autouse=True)
def entities(settings: Settings, write_entities: Callable[[dict[str, str]], Path]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FALCON_CLOCK", "2013-01-01T05:30Z")
        environment.setenv("AWS_ACCESS_KEY_ID", "x")
        environment.chdir(settings.home)
        write_entities({"all.yaml": ENTITIES, "a.sql": "SELECT * FROM rows"})
        yield


@pytest.fixture(scope="module")
def raw(settings: Settings) -> Path:
    return settings.home / "data/primary/raw/2012-03-01"


def land(folder: Path, hour: int, text: str = "a,1\n", *, complete: bool = True) -> None:
    (folder / f"{hour:02}").mkdir(parents=True, exist_ok=True)
    (folder / f"{hour:02}" / "part.csv").write_text(text)
    if complete:
        (folder / f"{hour:02}" / "_SUCCESS").touch()


def collect(feed: str, start: str, end: str, *more: str) -> Result:
    return CliRunner().invoke(instance, ["collect", feed, "--start", start, "--end", end, *more])


def test_what_landed_is_recorded_and_what_is_missing_is_said(raw: Path) -> None:
    land(raw, 0)
    land(raw, 1)
    land(raw, 2, complete=False)
    done = collect("raw", "2012-03-01T00:00Z", "2012-03-01T03:00Z")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "raw on primary: 2 recorded, 0 known already, 2 missing",
        "  new      2012-03-01T00:00Z  1 file, 4 bytes",
        "  new      2012-03-01T01:00Z  1 file, 4 bytes",
        f"  missing  2012-03-01T02:00Z  there is no _SUCCESS in {raw}/02",
        f"  missing  2012-03-01T03:00Z  there is nothing at {raw}/03",
    ]


def test_once_more_there_is_nothing_new(raw: Path) -> None:
    done = collect("raw", "2012-03-01T00:00Z", "2012-03-01T01:00Z", "--cluster", "primary")
    assert (done.exit_code, done.stdout) == (0, "raw on primary: nothing new, 2 known already, 0 missing\n")


def test_what_changed_is_recorded_as_another_version(raw: Path) -> None:
    land(raw, 0, "a,1\nb,2\n")
    done = collect("raw", "2012-03-01T00:00Z", "2012-03-01T00:00Z")
    assert done.stdout.splitlines() == [
        "raw on primary: 1 recorded, 0 known already, 0 missing",
        "  changed  2012-03-01T00:00Z  1 file, 8 bytes",
    ]


def test_of_many_that_are_missing_the_first_are_listed(raw: Path) -> None:
    done = collect("raw", "2012-04-01T00:00Z", "2012-04-30T00:00Z")
    lines = done.stdout.splitlines()
    assert lines[0] == "raw on primary: nothing new, 0 known already, 697 missing"
    assert lines[-1] == "  missing  ... and 677 more, the last one 2012-04-30T00:00Z"
    assert len(lines) == 22


def test_an_end_before_the_start_is_misuse() -> None:
    done = collect("raw", "2012-03-02T00:00Z", "2012-03-01T00:00Z")
    assert done.exit_code == 2
    assert "--end: it is before --start 2012-03-02T00:00Z" in done.output


def test_a_store_that_cannot_be_reached_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")  # nobody listens there
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    done = collect("remote", "2012-03-01T00:00Z", "2012-03-01T01:00Z")
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: remote on away: cluster 'away': cannot ")
    said = collect("remote", "2012-03-01T00:00Z", "2012-03-01T01:00Z", "--json")
    found = json.loads(said.stdout)
    assert said.exit_code == 1
    assert [one["collected"] for one in found["items"]] == ["unread", "unread"]
    assert [one["cluster"] for one in found["problems"]] == ["away"]
    assert "secret" not in done.output


def test_json_is_that_of_lists(raw: Path) -> None:
    land(raw, 20)
    land(raw, 21)
    asked = ("raw", "2012-03-01T20:00Z", "2012-03-01T22:00Z", "--json")
    first, second = json.loads(collect(*asked).stdout), json.loads(collect(*asked).stdout)
    assert [(one["state"], one["collected"]) for one in first["items"]] == [
        ("AVAILABLE", "new"),
        ("AVAILABLE", "new"),
        ("MISSING", "missing"),
    ]
    assert [one["collected"] for one in second["items"]] == ["known", "known", "missing"]
    assert first["items"][0]["feed"]["bytes"] == 4
    assert first["items"][2]["reason"] == {"kind": "not_landed", "text": f"there is nothing at {raw}/22"}
    assert (first["total"], first["next"], first["problems"]) == (3, None, [])
