"""Workflows of earlier versions as files: whole, whoever asks at once, and mended where they are damaged."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import Engine, delete

from falcon_assets.catalog.workflow_files import PART_BYTES, WorkflowFile, files_at
from falcon_assets.entities.workflow_contents import keep_workflows, workflow_folder
from falcon_assets.errors import StorageError
from falcon_assets.history.tables import FILE_CONTENTS

CONTENT = {"a/flow.sql": b"SELECT 1", "libs/large.jar": b"x" * (2 * PART_BYTES + 1), "empty.py": b""}


@pytest.fixture
def files(engine: Engine, tmp_path: Path) -> list[WorkflowFile]:
    """Kept in the database; one of them is named in a roundabout way."""
    for name, data in CONTENT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    found = [one for name in (*CONTENT, "libs/../a/flow.sql") for one in files_at(tmp_path, name)]
    with engine.begin() as connection:
        keep_workflows(connection, tmp_path, {("hourly", 1): found})
    return found


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "it's home"


def laid_out(engine: Engine, home: Path, files: list[WorkflowFile]) -> Path:
    with engine.connect() as connection:
        return workflow_folder(connection, home, "hash", files)


def test_the_files_are_there_for_reading_only(engine: Engine, home: Path, files: list[WorkflowFile]) -> None:
    folder = laid_out(engine, home, files)
    assert {name: (folder / name).read_bytes() for name in CONTENT} == CONTENT
    assert {(folder / name).stat().st_mode & 0o777 for name in CONTENT} == {0o444}
    before = {path: path.stat().st_ino for path in folder.rglob("*")}
    assert laid_out(engine, home, files) == folder
    assert {path: path.stat().st_ino for path in folder.rglob("*")} == before
    assert [one.name for one in folder.parent.iterdir() if one.name not in ("hash", ".lock")] == []


@pytest.mark.parametrize("damage", ["gone", "other"])
def test_what_is_damaged_is_made_anew(engine: Engine, home: Path, files: list[WorkflowFile], damage: str) -> None:
    file = laid_out(engine, home, files) / "a/flow.sql"
    file.unlink()
    if damage == "other":
        file.write_text("SELECT 2")
    assert (laid_out(engine, home, files) / "a/flow.sql").read_bytes() == b"SELECT 1"


def test_what_a_killed_process_left_is_in_nobodys_way(engine: Engine, home: Path, files: list[WorkflowFile]) -> None:
    (home / "workflows/.new/a").mkdir(parents=True)
    (home / "workflows/.new/a/flow.sql").write_text("half")
    assert (laid_out(engine, home, files) / "a/flow.sql").read_bytes() == b"SELECT 1"


def test_several_at_once(engine: Engine, home: Path, files: list[WorkflowFile]) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: laid_out(engine, home, files), range(4)))
    assert found == {home / "workflows/hash"}


def test_what_cannot_be_laid_out_is_said(engine: Engine, home: Path, files: list[WorkflowFile]) -> None:
    with engine.begin() as connection:
        connection.execute(delete(FILE_CONTENTS))
    with pytest.raises(StorageError, match="the database does not hold what a/flow"):
        laid_out(engine, home, files)
    with (
        engine.connect() as connection,
        pytest.raises(StorageError, match="workflows/hash cannot be written: Not a dir"),
    ):
        (home.parent / "file").touch()
        workflow_folder(connection, home.parent / "file", "hash", files)
