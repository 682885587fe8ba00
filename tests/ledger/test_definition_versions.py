"""Versions of definitions: each is written down once, whichever way it came."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, delete, select, update

from falcon_assets.catalog.store import load_entities
from falcon_assets.catalog.workflow_files import PART_BYTES, WorkflowFile
from falcon_assets.entities.definition_versions import (
    DefinitionVersion,
    Recorder,
    definition_history,
    record_definitions,
    recorded_kinds,
)
from falcon_assets.entities.workflow_contents import content_parts, keep_workflows, kept_files
from falcon_assets.errors import InvalidDefinitionsError, OldDefinitionError
from falcon_assets.history.tables import DEFINITION_TREES, DEFINITION_VERSIONS, FILE_CONTENTS, WORKFLOW_FILES
from falcon_assets.instances.runs.run_definitions import OldDefinitions
from falcon_assets.model.process import Process
from tests.features.entities.trees import BACKUP, DELAYS, HOURLY, PRIMARY, RAW, written
from tests.hours import hour
from tests.ledger.histories import ledger_engine
from tests.ledger.test_queries import count_statements
from tests.processes import forked

LOAD = Recorder("ann")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = written(tmp_path / "defs", a=PRIMARY, b=BACKUP, c=RAW, d=DELAYS, e=HOURLY)
    (folder / "hourly.sql").write_text("SELECT 1")
    return folder


def history(engine: Engine, kind: str, name: str) -> list[DefinitionVersion]:
    with engine.connect() as connection:
        return definition_history(connection, kind, name)


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_the_first_load_records_everything_and_the_next_asks_once(engine: Engine, root: Path) -> None:
    assert record_definitions(engine, root, hour(1), LOAD) == 5
    [raw] = history(engine, "feed", "raw")
    assert (raw.version, raw.text, raw.workflow_hash, raw.since) == (1, RAW, None, hour(1))
    assert (raw.operation, raw.actor, raw.reason) == ("load", "ann", "")
    assert history(engine, "process", "hourly")[0].workflow_hash
    statements = count_statements(engine)
    assert record_definitions(engine, root, hour(2), LOAD) == 0
    assert len(statements) == 1


def test_what_changes_goes_and_comes_back_is_a_version_each(engine: Engine, root: Path) -> None:
    record_definitions(engine, root, hour(1), LOAD)
    change(root / "c.yaml", "days(90)", "days(80)")
    assert record_definitions(engine, root, hour(2), Recorder("bob")) == 1
    (root / "e.yaml").unlink()
    assert record_definitions(engine, root, hour(3), LOAD) == 1
    (root / "e.yaml").write_text(HOURLY)
    assert record_definitions(engine, root, hour(4), LOAD) == 1
    raw, hourly = history(engine, "feed", "raw"), history(engine, "process", "hourly")
    assert [(one.version, one.actor, one.since) for one in raw] == [(1, "ann", hour(1)), (2, "bob", hour(2))]
    assert [(one.version, one.text) for one in hourly] == [(1, HOURLY), (2, None), (3, HOURLY)]


def test_another_workflow_is_another_version(engine: Engine, root: Path) -> None:
    record_definitions(engine, root, hour(1), LOAD)
    (root / "hourly.sql").write_text("SELECT 2")
    assert record_definitions(engine, root, hour(2), LOAD) == 1
    first, second = history(engine, "process", "hourly")
    assert first.text == second.text
    assert first.workflow_hash != second.workflow_hash


def test_secrets_are_nowhere(engine: Engine, root: Path) -> None:
    (root / "a.yaml").write_text(PRIMARY + "storage_options: {password: hunter2, key: {env: KEY}}\n")
    change(
        root / "a.yaml",
        "kind: cluster",
        "kind: cluster\nproperties: {db_password: hunter2, url: 'jdbc:x://u:hunter2@h/d'}",
    )
    record_definitions(engine, root, hour(1), LOAD)
    assert str(history(engine, "cluster", "primary")[0].text).endswith("{password: *****, key: {env: KEY}}\n")
    change(root / "a.yaml", "hunter2", "hunter3-longer")
    assert record_definitions(engine, root, hour(2), LOAD) == 0
    with engine.connect() as connection:
        rows = [*connection.execute(select(DEFINITION_VERSIONS)), *connection.execute(select(DEFINITION_TREES))]
    assert "hunter" not in str(rows)


def test_a_tree_with_problems_is_not_recorded(engine: Engine, root: Path) -> None:
    change(root / "c.yaml", "name: raw", "name: other")
    with pytest.raises(InvalidDefinitionsError):
        record_definitions(engine, root, hour(1), LOAD)
    assert not history(engine, "feed", "other")


def test_a_tree_that_is_not_there_was_not_deleted(engine: Engine, root: Path) -> None:
    record_definitions(engine, root, hour(1), LOAD)
    root.rename(root.with_name("away"))
    assert record_definitions(engine, root, hour(2), LOAD) == 0
    root.mkdir()
    assert record_definitions(engine, root, hour(3), LOAD) == 0
    assert len(history(engine, "feed", "raw")) == 1


def test_a_command_records_what_it_changed_and_the_next_load_the_rest(engine: Engine, root: Path) -> None:
    record_definitions(engine, root, hour(1), LOAD)
    change(root / "c.yaml", "days(90)", "days(80)")
    (root / "e.yaml").unlink()
    (root / "a.yaml").write_text(PRIMARY + "# new\n")
    told = frozenset({("feed", "raw"), ("process", "hourly"), ("feed", "unknown")})
    command = Recorder("bob", "update", "too long", told)
    assert record_definitions(engine, root, hour(2), command) == 2
    raw, hourly = history(engine, "feed", "raw")[-1], history(engine, "process", "hourly")[-1]
    assert (raw.operation, raw.actor, raw.reason, raw.version) == ("update", "bob", "too long", 2)
    assert (hourly.operation, hourly.text) == ("update", None)
    assert record_definitions(engine, root, hour(3), LOAD) == 1
    assert history(engine, "cluster", "primary")[-1].operation == "load"


def test_another_tree_with_the_same_definitions_adds_nothing(engine: Engine, root: Path, tmp_path: Path) -> None:
    record_definitions(engine, root, hour(1), LOAD)
    other = written(tmp_path / "other", a=PRIMARY, b=BACKUP)
    assert record_definitions(engine, other, hour(2), LOAD) == 0
    (other / "b.yaml").unlink()
    assert record_definitions(engine, other, hour(3), LOAD) == 0  # the first tree has it


def test_names_are_taken_as_they_are(engine: Engine, root: Path) -> None:
    record_definitions(engine, root, hour(1), replace(LOAD, actor="Robert'); DROP TABLE falcon.fold; --"))
    assert history(engine, "feed", "raw' OR '1'='1") == []
    assert history(engine, "feed", "raw")[0].actor.startswith("Robert')")
    with engine.connect() as connection:
        assert recorded_kinds(connection, "raw") == ["feed"]


def test_several_processes_at_once(engine: Engine, database: str, root: Path) -> None:
    def load() -> None:
        record_definitions(ledger_engine(database), root, hour(1), LOAD)

    children = [forked(load) for _ in range(4)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    assert [one.version for one in history(engine, "feed", "raw")] == [1]


def test_bytes_that_are_no_text(engine: Engine, root: Path) -> None:
    odd = root.rename(root.with_name("odd\udcff\n"))
    assert (
        record_definitions(engine, odd, hour(1), Recorder("a\x00b", "update", "\udcfe", frozenset({("feed", "raw")})))
        == 1
    )
    assert record_definitions(engine, odd, hour(1), LOAD) == 4
    assert record_definitions(engine, odd, hour(2), LOAD) == 0
    assert history(engine, "feed", "raw")[0].reason.isprintable()


def kept(engine: Engine, version: int) -> dict[str, bytes | str]:
    """The files of that version of the process: what is in them, or why they were not kept."""
    with engine.connect() as connection:
        return {
            one.path: b"".join(content_parts(connection, one.hash)) if one.hash else one.problem
            for one in kept_files(connection, "hourly", version)
        }


def contents(engine: Engine) -> int:
    with engine.connect() as connection:
        return len(connection.execute(select(FILE_CONTENTS.c.hash).distinct()).all())


def test_the_files_of_workflows_are_kept_with_each_version(engine: Engine, root: Path) -> None:
    record_definitions(engine, root, hour(1), LOAD)
    (root / "hourly.sql").write_text("SELECT 2")
    record_definitions(engine, root, hour(2), LOAD)
    (root / "hourly.sql").write_text("SELECT 1")
    record_definitions(engine, root, hour(3), LOAD)
    assert [kept(engine, number) for number in (1, 2, 3)] == [
        {"hourly.sql": b"SELECT 1"},
        {"hourly.sql": b"SELECT 2"},
        {"hourly.sql": b"SELECT 1"},
    ]
    assert contents(engine) == 2


def test_libraries_late_workflows_and_large_files_are_kept(engine: Engine, root: Path) -> None:
    jar = os.urandom(PART_BYTES) + b"end"
    (root / "lib" / "__pycache__").mkdir(parents=True)
    for name, data in {"a.jar": jar, "b.py": b"", "__pycache__/b.pyc": b"compiled"}.items():
        (root / "lib" / name).write_bytes(data)
    (root / "late.sql").write_text("SELECT 'late'")
    late = "{input: flights, workflow: {engine: spark-sql, path: late.sql}}"
    change(root / "e.yaml", "{input: flights}", late)
    change(root / "e.yaml", "path: hourly.sql}", "path: hourly.sql, lib: [lib]}")
    record_definitions(engine, root, hour(1), LOAD)
    assert kept(engine, 1) == {
        "hourly.sql": b"SELECT 1",
        "late.sql": b"SELECT 'late'",
        "lib/a.jar": jar,
        "lib/b.py": b"",
    }
    (root / "lib" / "__pycache__" / "c.pyc").write_bytes(b"compiled")
    assert record_definitions(engine, root, hour(2), LOAD) == 0


def test_what_cannot_be_kept_is_noted(engine: Engine, root: Path) -> None:
    (root / "lib").mkdir()
    (root / "lib" / "a.jar").write_bytes(b"jar")
    os.mkfifo(root / "lib" / "pipe")
    (root / "lib" / "odd\udcff.py").write_bytes(b"")
    change(root / "e.yaml", "path: hourly.sql}", f"path: {root}/hourly.sql, lib: [lib]}}")
    record_definitions(engine, root, hour(1), LOAD)
    assert kept(engine, 1) == {
        f"{root}/hourly.sql": "its path leads out of the folder of the definitions",
        "lib/a.jar": b"jar",
        "lib/odd\\udcff.py": "its path cannot be printed",
        "lib/pipe": "no file",
    }


def test_a_file_that_changes_while_it_is_kept_is_not_kept(engine: Engine, root: Path) -> None:
    with engine.begin() as connection:
        other = WorkflowFile("hourly.sql", "0" * 64)
        keep_workflows(connection, root, {("hourly", 1): (other,)})
    assert kept(engine, 1) == {"hourly.sql": "it changed while it was read"}
    assert contents(engine) == 0


def test_files_of_versions_that_were_recorded_without_them_are_kept_by_the_next_load(
    engine: Engine, root: Path
) -> None:
    record_definitions(engine, root, hour(1), LOAD)
    with engine.begin() as connection:
        connection.execute(delete(WORKFLOW_FILES))
        connection.execute(update(DEFINITION_TREES).values(fingerprint=""))  # as the migration leaves it
    assert record_definitions(engine, root, hour(2), LOAD) == 0
    assert kept(engine, 1) == {"hourly.sql": b"SELECT 1"}


def test_a_command_keeps_the_files_of_what_it_changed_only(engine: Engine, root: Path) -> None:
    record_definitions(engine, root, hour(1), LOAD)
    (root / "hourly.sql").write_text("SELECT 2")
    change(root / "c.yaml", "days(90)", "days(80)")
    record_definitions(engine, root, hour(2), Recorder("bob", "update", "", frozenset({("feed", "raw")})))
    assert kept(engine, 1) == {"hourly.sql": b"SELECT 1"}
    record_definitions(engine, root, hour(3), LOAD)
    assert kept(engine, 2) == {"hourly.sql": b"SELECT 2"}


def test_an_earlier_version_runs_with_the_secrets_of_now(engine: Engine, root: Path, tmp_path: Path) -> None:
    file = root / "e.yaml"
    file.write_text(HOURLY.strip("\n") + "\nproperties: {db_password: hunter2, size: '1'}\n")
    record_definitions(engine, root, hour(1), LOAD)
    change(file, "hunter2, size: '1'", "hunter3, size: '2'")
    assert record_definitions(engine, root, hour(2), LOAD) == 1

    def earlier() -> Process:
        store = load_entities(root)
        return OldDefinitions("hourly", "primary", store, tmp_path, engine).of(1, with_feeds=False)[0]

    assert earlier().properties == {"db_password": "hunter3", "size": "1"}
    change(file, "db_password: hunter3, ", "")
    with pytest.raises(OldDefinitionError) as raised:
        earlier()
    assert str(raised.value) == (
        "version 1 of process 'hourly' cannot run any more: secrets are not recorded but taken from the present "
        "definition, and the present definition of the process has none there: properties.db_password; declare it again"
    )
