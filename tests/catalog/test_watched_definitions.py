from __future__ import annotations

from pathlib import Path

import pytest

from falcon_assets.catalog import watched_definitions as watched
from falcon_assets.catalog.store import load_entities
from falcon_assets.catalog.watched_definitions import WatchedDefinitions

FEED = """\
kind: feed
name: {name}
frequency: hours(1)
locations: {{data: "/{name}/${{YEAR}}/${{MONTH}}/${{DAY}}/${{HOUR}}"}}
clusters: [{{name: here, validity: {{start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}}}]
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "here.yaml").write_text(
        'kind: cluster\nname: here\ninterfaces: {write: {endpoint: data}, execute: {endpoint: "local[1]"}}\n'
    )
    (tmp_path / "raw.yaml").write_text(FEED.format(name="raw"))
    load_entities(tmp_path)
    return tmp_path


def test_what_changes_is_checked_and_said_until_it_is_mended(root: Path) -> None:
    definitions = WatchedDefinitions(root)
    assert definitions.problem() is None
    (root / "more.yaml").write_text(FEED.format(name="more"))
    assert definitions.problem() is None
    (root / "more.yaml").write_text("kind: feed\nname: [")
    for _ in range(2):
        assert "more.yaml" in (definitions.problem() or "")
    (root / "more.yaml").unlink()
    assert definitions.problem() is None


def test_a_folder_that_is_away_is_a_problem(root: Path) -> None:
    definitions = WatchedDefinitions(root)
    root.rename(root.with_name("away"))
    assert "there is no folder" in (definitions.problem() or "")
    root.with_name("away").rename(root)
    assert definitions.problem() is None


def test_files_are_read_only_when_one_of_them_has_changed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tick of each pipeline asks every few seconds."""
    read: list[Path] = []
    monkeypatch.setattr(watched, "load_entities", read.append)
    definitions = WatchedDefinitions(root)
    for _ in range(3):
        assert definitions.problem() is None
    assert read == []
    (root / "raw.yaml").write_text(FEED.format(name="other"))
    for _ in range(3):
        assert definitions.problem() is None
    assert read == [root]
