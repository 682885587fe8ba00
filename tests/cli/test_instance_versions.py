"""``falcon instance versions`` and ``falcon instance restore`` as people see them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import pytest
from click.testing import CliRunner, Result

from falcon_assets.errors import FalconError
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.surface.cli.main import falcon
from falcon_assets.surface.cli.retention import retention
from tests.versioned import TREE, kept, present, publish


@pytest.fixture
def installation(
    write_entities: Callable[[dict[str, str]], Path], instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Installation]:
    monkeypatch.setenv("FALCON_CLOCK", "2013-01-01T05:30Z")
    monkeypatch.setenv("COLUMNS", "400")
    write_entities(TREE)
    with open_installation() as opened:
        yield opened


def call(*words: str) -> Result:
    return CliRunner().invoke(falcon, ["instance", *words])


def said(*words: str) -> str:
    done = call(*words)
    assert done.exit_code == 0, done.output
    return done.output


def test_versions_and_restore(installation: Installation) -> None:
    assert said("versions", "totals", "2013-01-01T03:00Z") == (
        "totals 2013-01-01T03:00Z on primary is not there, and has no versions\n"
    )
    one, two = publish(installation, "one"), publish(installation, "two")
    lines = [line.split() for line in said("versions", "totals", "--start", "2013-01-01T03:00Z").splitlines()]
    rows = {cells[1]: cells for cells in lines if len(cells) > 3 and cells[1] in (one, two)}
    assert {version: cells[3] for version, cells in rows.items()} == {one: "KEPT", two: "AVAILABLE"}
    assert any(one in cell for cell in rows[one][5:])  # where it lies

    restore = ("restore", "totals", "2013-01-01T03:00Z", "--version", one)
    would = f"totals 2013-01-01T03:00Z on primary would be restored to version {one}\n"
    assert said(*restore, "--dry-run") == would
    assert present(installation) == "two"
    assert (
        said(*restore, "--reason", "x") == f"totals 2013-01-01T03:00Z on primary is version {one} again; it was {two}\n"
    )
    assert (present(installation), kept(installation)) == ("one", {two})
    assert said(*restore) == f"totals 2013-01-01T03:00Z on primary is version {one} already\n"
    data = json.loads(said(*restore, "--json"))
    assert (data["operation"], data["changed"], data["version"], data["before"]) == ("restore", False, one, one)
    found = json.loads(said("versions", "totals", "2013-01-01T03:00Z", "--json"))
    assert {item["version"]: item["state"] for item in found["items"]} == {one: "AVAILABLE", two: "KEPT"}
    assert (found["feed"], found["cluster"], found["total"]) == ("totals", "primary", 2)


def test_the_plan_of_retention_shows_versions(installation: Installation) -> None:
    nominal = parse_instant("2013-01-01T04:00Z")
    versions = [publish(installation, text, nominal) for text in ("a", "b", "c", "d")]
    done = CliRunner().invoke(retention, ["plan", "--cluster", "primary", "--json"])
    assert done.exit_code == 0, done.output
    (plan,) = json.loads(done.output)
    own = {item["version"]: item for item in plan["versions"] if item["instance"] == "2013-01-01T04:00Z"}
    assert own.keys() == set(versions[:3])
    assert sorted(item["action"] for item in own.values()) == ["delete", "keep", "keep"]
    assert plan["instances"] == []
    lines = CliRunner().invoke(retention, ["plan"]).output.splitlines()
    actions = [line.strip("│ ").split("│")[0].strip() for line in lines]
    assert {"delete version", "keep version"} <= set(actions)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("versions", "raws", "2013-01-01T03:00Z"), "there is no feed 'raws' (did you mean 'raw'?)"),
        (("versions", "totals", "2014-01-01T03:00Z"), "feed 'totals' on cluster 'primary' has no instance"),
        (("restore", "raw", "2013-01-01T03:00Z", "--version", "x"), "the feed keeps no versions: declare `versions`"),
    ],
    ids=["no such feed", "no such instance", "no versions"],
)
def test_refusals(installation: Installation, words: tuple[str, ...], message: str) -> None:
    done = call(*words)
    assert isinstance(done.exception, FalconError)
    assert message in str(done.exception)


def test_a_version_is_to_be_said(installation: Installation) -> None:
    done = call("restore", "totals", "2013-01-01T03:00Z")
    assert done.exit_code == 2
    assert "Missing option '--version'" in done.output
