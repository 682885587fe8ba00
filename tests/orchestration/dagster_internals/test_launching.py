"""A run that Dagster hands over is executed by the process that a launcher of ours starts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import dagster as dg
import psutil
import pytest
from dagster._core.workspace.context import WorkspaceProcessContext, WorkspaceRequestContext
from dagster._core.workspace.load_target import ModuleTarget, PythonFileTarget

from falcon_assets.history.dagster_internals.launching import (
    ExecuteRunArgs,
    LaunchRunContext,
    RunLauncher,
    job_in,
    serialize_value,
)
from tests.waiting import wait_until

LOCATION = """
import dagster as dg

@dg.op
def nothing() -> None: ...

@dg.job
def does_nothing() -> None:
    nothing()

defs = dg.Definitions(jobs=[does_nothing], metadata={"falcon/setup": "alike"})
"""
EXECUTES = "import sys; from falcon_assets.history.dagster_internals.launching import execute_run; "


class Launcher(RunLauncher):
    """Takes the runs of one location, and keeps what it would start."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Mapping[str, Any]] = []
        self.started: dict[str, str] = {}

    def takes(self, location: Mapping[str, Any]) -> bool:
        self.asked.append(location)
        return True

    def start(self, run_id: str, arguments: str) -> None:
        self.started[run_id] = arguments


@pytest.fixture(scope="module")
def workspace(
    instance: dg.DagsterInstance, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WorkspaceRequestContext]:
    file = tmp_path_factory.mktemp("location") / "location.py"
    file.write_text(LOCATION)
    target = PythonFileTarget(str(file), attribute=None, working_directory=str(file.parent), location_name="ours")
    others = psutil.Process().children(recursive=True)
    with WorkspaceProcessContext(instance, target) as process:
        yield process.create_request_context()
        started = set(psutil.Process().children(recursive=True)) - set(others)
    for one in started:  # a code server that has executed a run does not end while its database is away
        with suppress(psutil.NoSuchProcess):
            one.kill()


@pytest.fixture
def run(instance: dg.DagsterInstance, workspace: WorkspaceRequestContext, tmp_path: Path) -> dg.DagsterRun:
    """As the queue has it."""
    (repository,) = workspace.get_code_location("ours").get_repositories().values()
    job = repository.get_full_job("does_nothing")
    return instance.create_run(
        job_name=job.name,
        run_id=None,
        run_config=None,
        status=dg.DagsterRunStatus.STARTING,
        tags={},
        root_run_id=None,
        parent_run_id=None,
        step_keys_to_execute=None,
        execution_plan_snapshot=None,
        job_snapshot=job.job_snapshot,
        parent_job_snapshot=None,
        asset_selection=None,
        asset_check_selection=None,
        resolved_op_selection=None,
        op_selection=None,
        remote_job_origin=job.get_remote_origin(),
        job_code_origin=job.get_python_origin(),
        asset_graph=repository.asset_graph,
    )


def test_a_run_is_handed_over_and_executed(
    instance: dg.DagsterInstance, workspace: WorkspaceRequestContext, run: dg.DagsterRun
) -> None:
    launcher = Launcher()
    launcher.register_instance(instance)
    launcher.launch_run(LaunchRunContext(run, workspace))
    assert launcher.asked == [{"falcon/setup": "alike"}], (
        "Dagster keeps the metadata of definitions elsewhere: a launcher does not know whose run it is handed"
    )
    assert list(launcher.started) == [run.run_id], "Dagster's runs do not say any more which code they execute"
    done = subprocess.run(
        [sys.executable, "-c", f"{EXECUTES} execute_run(sys.argv[1])", launcher.started[run.run_id]],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"Dagster's command that executes a run takes other arguments: {done.stderr}"
    ended = instance.get_run_by_id(run.run_id)
    assert ended is not None
    assert ended.status is dg.DagsterRunStatus.SUCCESS, "Dagster's command does not execute the run that it is given"


def test_the_job_of_a_run_is_known_where_the_code_location_is_that_module(
    instance: dg.DagsterInstance, run: dg.DagsterRun, tmp_path: Path
) -> None:
    def said(origin: Any) -> str:
        return serialize_value(ExecuteRunArgs(origin, run.run_id, instance.get_ref()))

    (tmp_path / "location_of_this_test.py").write_text(LOCATION)
    target = ModuleTarget("location_of_this_test", None, str(tmp_path), "another")
    with WorkspaceProcessContext(instance, target) as process:
        location = process.create_request_context().get_code_location("another")
        (repository,) = location.get_repositories().values()
        origin = repository.get_full_job("does_nothing").get_python_origin()
    assert job_in(said(origin), "location_of_this_test") == "does_nothing", "Dagster names modules in another way"
    assert job_in(said(origin), "falcon_assets.definitions") is None
    assert job_in(said(run.job_code_origin), "falcon_assets.definitions") is None


def test_a_run_that_dagster_launched_is_told_from_others(
    instance: dg.DagsterInstance, workspace: WorkspaceRequestContext, run: dg.DagsterRun
) -> None:
    launcher = Launcher()
    assert not launcher.is_followed_by_dagster(run)
    stock = dg.DefaultRunLauncher()
    stock.register_instance(instance)
    stock.launch_run(LaunchRunContext(run, workspace))
    wait_until(lambda: instance.get_run_by_id(run.run_id).is_finished, 120, "the end of the run")
    launched = instance.get_run_by_id(run.run_id)
    assert launched is not None
    assert launcher.is_followed_by_dagster(launched), (
        "Dagster's own launcher does not tag the runs that it starts any more: they could not be stopped"
    )
