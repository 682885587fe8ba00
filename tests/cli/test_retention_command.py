from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Engine, create_engine

from falcon_assets.history.database import upgrade
from falcon_assets.settings import Settings
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.surface.cli.main import main
from falcon_assets.surface.cli.retention import retention
from tests.builders import make_cluster
from tests.operations.entities import RETAINED as ENTITIES

WRITE = {"write": {"endpoint": "data/backup"}, "execute": {"endpoint": "local[1]"}}


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


def test_archiving_and_another_time(call: Callable[..., Result]) -> None:
    (plan,) = planned(call, "--feed", "raw", "--cluster", "backup", "--as-of", "2013-01-01T03:00Z")
    assert fates(plan)[0] == ("archive", "older than hours(2)")
    first = plan["instances"][0]
    assert first["paths"] == ["/raw/2013-01-01/00"]
    assert (first["archive_to"], first["archive_cluster"]) == ("/old/2013-01-01-00", "empty")
    assert fates(plan)[1] == ("keep", "not older than hours(2)")


def test_what_is_staged_of_instances_that_never_came(call: Callable[..., Result], home: Path) -> None:
    store = ClusterStore(make_cluster(name="backup", interfaces=WRITE), home, {})
    target = kind_of(store).copy_target(OutputTarget("/raw/2013-01-01/09", None), "primary")
    target.begin()
    (plan,) = planned(call, "--feed", "raw", "--cluster", "backup", "--as-of", "2013-01-01T12:00Z")
    assert plan["unfinished_copies"] == [
        {
            "instance": "2013-01-01T09:00Z",
            "action": "delete",
            "reason": "older than hours(2)",
            "path": "/raw/2013-01-01/09",
            "sources": ["primary"],
        }
    ]
    said = call("--feed", "raw", "--cluster", "backup").output
    lines = [[cell.strip() for cell in line.strip("│ ").split("│")] for line in said.splitlines()]
    assert ["keep copy", "1", "2013-01-01T09:00Z", "2013-01-01T09:00Z"] in [line[:4] for line in lines]
    target.end([])
    (plan,) = planned(call, "--feed", "raw", "--cluster", "backup")
    assert "unfinished_copies" not in plan


def test_without_retention_a_feed_is_shown_when_asked_for(call: Callable[..., Result]) -> None:
    (plan,) = planned(call, "--feed", "kept")
    assert set(fates(plan).values()) == {("keep", "no retention is declared")}
    assert plan["status"] == "SUBMITTED"
    assert [(one["feed"], one["cluster"]) for one in planned(call, "--cluster", "primary")] == [("raw", "primary")]


def test_where_nothing_is_there_no_table_is_drawn(call: Callable[..., Result]) -> None:
    said = "unborn on empty: nothing is there; the feed is SUBMITTED, so nothing goes by itself\n"
    assert call("--feed", "unborn").output == said


def test_a_problem_is_said_and_delays_no_other(call: Callable[..., Result]) -> None:
    result = call()
    assert result.exit_code == 1
    assert "Error: linked on backup: cluster 'backup': '/linked' leaves the root" in result.output
    assert "raw on primary: 1 of 8 would go\n" in result.output
    assert "raw on backup: 4 of 8 would go\n" in result.output
    lines = [[cell.strip() for cell in line.strip("│ ").split("│")] for line in result.output.splitlines()]
    assert ["delete", "1", "2013-01-01T00:00Z", "2013-01-01T00:00Z", "older than hours(3)"] in lines


def test_what_is_not_there_is_said_in_a_line(
    call: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Through ``falcon`` itself: no traceback, and the exit code of an error."""
    monkeypatch.setattr(sys, "argv", ["falcon", "retention", "plan", "--json", "--feed", "raws"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert capsys.readouterr() == ("", "Error: there is no feed 'raws' (did you mean 'raw'?)\n")


def test_no_feed_with_retention_is_an_empty_plan(call: Callable[..., Result]) -> None:
    assert planned(call, "--cluster", "empty") == []
    result = call("--cluster", "empty")
    assert (result.exit_code, result.output) == (0, "no feed declares retention on cluster 'empty'\n")


def test_a_problem_is_in_the_json_too(call: Callable[..., Result]) -> None:
    result = call("--feed", "linked", "--json")
    assert result.exit_code == 1
    (plan,) = json.loads(result.stdout)
    assert (plan["instances"], plan["problem"][:41]) == ([], "cluster 'backup': '/linked' leaves the ro")
    assert result.stderr.startswith("Error: linked on backup: cluster 'backup': '/linked' leaves the root")
