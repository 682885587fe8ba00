"""Entities that were read and checked are kept until something changes; what is kept is for its user alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.entities import write_entities
from falcon_assets.catalog import checking, kept_entities, store
from falcon_assets.catalog.store import EntityStore, load_entities
from falcon_assets.catalog.yaml_files.documents import Files
from falcon_assets.errors import InvalidDefinitionsError
from falcon_assets.model.feed import Feed

NUMBER = 60
FEED = "feeds/feed-10.yaml"


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, EntityStore]:
    """A folder of definitions, and what they say; tests put back what they change."""
    root = tmp_path_factory.mktemp("definitions")
    write_entities(root, NUMBER, NUMBER)
    surprising = (root / FEED).read_text().replace("high: hours(4)", "high: days(100)")
    (root / FEED).write_text(surprising)
    return root, load_entities(root)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that were read, and not taken as they were kept."""
    asked: list[Path] = []
    read = checking.read_files

    def noted(root: Path) -> Files:
        asked.append(root)
        return read(root)

    monkeypatch.setattr(checking, "read_files", noted)
    return asked


def kept_file(home: Path) -> Path:
    (file,) = (home / kept_entities.FOLDER).iterdir()
    return file


def test_they_are_the_same_as_read_anew(checked: tuple[Path, EntityStore], reads: list[Path], tmp_path: Path) -> None:
    root, plain = checked
    assert plain.warnings
    assert [load_entities(root, home=tmp_path) == plain for _ in range(3)] == [True] * 3
    assert reads == [root]
    assert kept_file(tmp_path).stat().st_mode & 0o777 == 0o600
    assert kept_file(tmp_path).parent.stat().st_mode & 0o777 == 0o700


def test_positions_and_warnings_are_shown_from_where_one_stands(
    checked: tuple[Path, EntityStore], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, _ = checked
    load_entities(root, home=tmp_path)
    monkeypatch.chdir(root)
    found = load_entities(root, home=tmp_path)
    assert found == load_entities(root)
    assert {one.position.file for one in found.warnings} == {FEED}


def test_what_changes_is_seen(checked: tuple[Path, EntityStore], reads: list[Path], tmp_path: Path) -> None:
    root, plain = checked
    load_entities(root, home=tmp_path)
    file, text = root / FEED, (root / FEED).read_text()
    try:
        file.write_text(text.replace("of source 10", "of source 11"))  # as long as before
        os.utime(file, ns=(0, 0))
        assert load_entities(root, home=tmp_path).feeds["feed-10"].description == "hourly events of source 11"
        file.rename(root / "feeds/moved.yaml")
        assert load_entities(root, home=tmp_path).positions["feed", "feed-10"].file.endswith("moved.yaml")
        (root / "feeds/moved.yaml").unlink()
        with pytest.raises(InvalidDefinitionsError, match="feed-10"):
            load_entities(root, home=tmp_path)
    finally:
        (root / "feeds/moved.yaml").unlink(missing_ok=True)
        file.write_text(text)
    assert load_entities(root, home=tmp_path) == plain
    assert len(reads) == 5


def test_a_workflow_that_is_gone_is_missed(checked: tuple[Path, EntityStore], tmp_path: Path) -> None:
    root, plain = checked
    load_entities(root, home=tmp_path)
    program = root / "workflows/copy.sql"
    program.rename(program.with_suffix(".away"))
    with pytest.raises(InvalidDefinitionsError, match=r"'workflows/copy.sql' is not a file"):
        load_entities(root, home=tmp_path)
    program.with_suffix(".away").rename(program)
    assert load_entities(root, home=tmp_path) == plain


def test_another_version_of_the_package_reads_them_anew(
    checked: tuple[Path, EntityStore], reads: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, plain = checked
    load_entities(root, home=tmp_path)
    monkeypatch.setattr(kept_entities, "_code", lambda: ("another",))
    assert load_entities(root, home=tmp_path) == plain
    assert len(reads) == 2


def _linked(file: Path) -> None:
    file.rename(file.parent.parent / "elsewhere")
    file.symlink_to(file.parent.parent / "elsewhere")


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda file: file.write_bytes(b""), id="empty"),
        pytest.param(lambda file: file.write_bytes(file.read_bytes()[:-9]), id="cut off"),
        pytest.param(lambda file: file.write_bytes(file.read_bytes().replace(b"etl", b"abc")), id="other content"),
        pytest.param(lambda file: file.write_bytes(b"[" * 100_000), id="deep"),
        pytest.param(lambda file: file.write_bytes(b"\xff\x00\n{}"), id="no text"),
        pytest.param(lambda file: file.chmod(0o644), id="others may read it"),
        pytest.param(lambda file: file.chmod(0o620), id="others may write it"),
        pytest.param(_linked, id="a link"),
        pytest.param(
            lambda file: os.chown(file, 12345, -1),
            id="another user's",
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away"),
        ),
    ],
)
def test_what_cannot_be_trusted_is_ignored_and_written_anew(
    checked: tuple[Path, EntityStore], reads: list[Path], tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    root, plain = checked
    load_entities(root, home=tmp_path)
    good = kept_file(tmp_path).read_bytes()
    spoil(kept_file(tmp_path))
    assert load_entities(root, home=tmp_path) == plain
    assert len(reads) == 2
    new = kept_file(tmp_path)
    assert (new.read_bytes(), new.is_symlink(), new.stat().st_mode & 0o777) == (good, False, 0o600)
    load_entities(root, home=tmp_path)
    assert len(reads) == 2


def test_where_nothing_can_be_kept_they_are_read(checked: tuple[Path, EntityStore], tmp_path: Path) -> None:
    root, plain = checked
    (tmp_path / kept_entities.FOLDER).write_text("in the way")
    assert load_entities(root, home=tmp_path) == plain
    assert load_entities(root, home=tmp_path / "none") == plain
    assert not (tmp_path / "none").exists()


def test_what_has_problems_is_not_kept_nor_what_is_strict(checked: tuple[Path, EntityStore], tmp_path: Path) -> None:
    root, _ = checked
    with pytest.raises(InvalidDefinitionsError):
        load_entities(root, strict=True, home=tmp_path)
    assert not (tmp_path / kept_entities.FOLDER).exists()


def test_of_what_is_kept_only_that_is_read_that_is_asked_for(
    checked: tuple[Path, EntityStore], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, plain = checked
    load_entities(root, home=tmp_path)
    made: list[str] = []
    validate = Feed.model_validate

    def noted(data: Any) -> Feed:
        made.append(data["name"])
        return validate(data)

    monkeypatch.setattr(Feed, "model_validate", noted)
    found = load_entities(root, home=tmp_path)
    assert (len(found.feeds), "feed-3" in found.feeds, "feed-x" in found.feeds) == (NUMBER, True, False)
    assert (found.relations, found.critical, made) == (plain.relations, plain.critical, [])
    assert found.feed("feed-3") is found.feeds["feed-3"]
    assert (found.feed("feed-3"), made) == (plain.feed("feed-3"), ["feed-3"])
    for kept, fresh in (
        (found.workload("process-3", "cluster-0"), plain.workload("process-3", "cluster-0")),
        (found.writers("feed-33", "cluster-0")[0], plain.writers("feed-33", "cluster-0")[0]),
    ):
        assert kept and fresh and (kept.name, kept.outputs) == (fresh.name, fresh.outputs)
    assert (found.replications, found.late_workloads, made) == ({}, (), ["feed-3"])


def test_what_is_secret_of_kept_entities_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "definitions"
    write_entities(root, 2, 2)
    file = root / "processes/process-1.yaml"
    file.write_text(file.read_text().replace('threshold: "15"', "db_password: kept-back"))
    load_entities(root, home=tmp_path)
    told: set[str] = set()
    monkeypatch.setattr(store, "keep_secret", told.update)
    load_entities(root, home=tmp_path)
    assert told == {"kept-back"}
