"""What the doctor says of ``dagster.yaml``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from falcon_assets.doctor.dagster_yaml import judge_absence, judge_declared
from falcon_assets.doctor.diagnosis import Diagnosis
from falcon_assets.history.dagster_internals.instance_config import find_class

FILE = Path("/d/dagster.yaml")
OURS = "storage: {custom: {module: falcon_assets.dagster_instance, class: FalconStorage}}\n"


def said(text: str, **environ: str) -> list[tuple[str, str]]:
    declared: dict[str, Any] = yaml.safe_load(text) or {}
    return [(one.status.value, one.text) for one in judge_declared(FILE, declared, environ, find_class)]


def test_that_of_this_package_is_well() -> None:
    text = Path("dagster.yaml").read_text()
    assert said(text) == [("ok", "/d/dagster.yaml keeps history where the ledger reads it, and its classes are there")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "names no storage: Dagster keeps its history in SQLite"),
        ("storage: {sqlite: {base_dir: x}}", ": Dagster keeps its history in SQLite, and the ledger reads PostgreSQL"),
        ("storage: {mysql: {mysql_url: x}}", ": Dagster keeps its history in MySQL, and the ledger reads PostgreSQL"),
        (
            "event_log_storage: {module: dagster._core.storage.event_log, "
            "class: SqliteEventLogStorage, config: {base_dir: x}}",
            ": Dagster keeps its history in SQLite, and the ledger reads PostgreSQL",
        ),
        (
            "storage: {custom: {module: dagster._core.storage.sqlite_storage, "
            "class: DagsterSqliteStorage, config: {base_dir: x}}}",
            ": Dagster keeps its history in SQLite, and the ledger reads PostgreSQL",
        ),
        (
            f"{OURS}run_launcher: {{module: falcon_assets.nowhere, class: WarmRunLauncher}}",
            ": run_launcher: the module falcon_assets.nowhere cannot be imported (ModuleNotFoundError: No module named "
            "'falcon_assets.nowhere')",
        ),
        (
            f"{OURS}run_launcher: {{module: dagster, class: ColdRunLauncher}}",
            ": run_launcher: there is no class ColdRunLauncher in the module dagster",
        ),
        (
            f"{OURS}run_launcher: {{module: dagster, class: DefaultRunLauncher, config: {{fast: true}}}}",
            ': run_launcher: DefaultRunLauncher: Received unexpected config entry "fast" at the root',
        ),
        (
            f"{OURS}run_launcher: {{module: pathlib, class: Path}}",
            ": run_launcher: Path is none of the classes that Dagster makes from its configuration",
        ),
        (
            f"{OURS}secrets: {{custom: {{module: dagster, class: Vault}}}}",
            ": secrets: there is no class Vault in the module dagster",
        ),
        (
            f"{OURS}concurrency: {{runs: {{max_concurrent_runs: 0}}}}",
            ": concurrency.runs.max_concurrent_runs is 0: no run ever starts",
        ),
        (
            f"{OURS}run_coordinator: "
            "{module: dagster, class: QueuedRunCoordinator, config: {max_concurrent_runs: 0}}",
            ": run_coordinator.config.max_concurrent_runs is 0: no run ever starts",
        ),
        (
            f"{OURS}run_queue: {{max_concurrent_runs: {{env: SLOTS}}}}",
            ": run_queue.max_concurrent_runs is 0: no run ever starts",
        ),
    ],
)
def test_a_problem(text: str, expected: str) -> None:
    ((status, found),) = said(text, SLOTS="0")
    assert (status, found.removeprefix("/d/dagster.yaml").strip()) == ("problem", expected.strip())


def test_another_storage_surprises() -> None:
    ((status, text),) = said("storage: {postgres: {postgres_url: x}}")
    assert status == "warning"
    assert text.startswith("/d/dagster.yaml: history is kept by postgres: entities whose frequency no cron")


@pytest.mark.parametrize(("told", "status"), [(True, "problem"), (False, "warning")])
def test_no_file(told: bool, status: str) -> None:
    found: Diagnosis = judge_absence(Path("/d"), is_set=told)
    assert found.status.value == status
    assert "dagster.yaml in" in found.text
    assert "DAGSTER_HOME" in found.fix
