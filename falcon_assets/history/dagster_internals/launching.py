"""Dagster's runs and its daemon in processes of our own, by the commands that Dagster executes them with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._cli.api import execute_run_command  # what a worker process runs, as `dagster api execute_run` does
from dagster._core.code_pointer import ModuleCodePointer  # how a run names the module of its code location
from dagster._core.launcher.base import LaunchRunContext  # what a launcher is handed
from dagster._core.storage.tags import GRPC_INFO_TAG  # a run's code server, by which Dagster's own launcher stops it
from dagster._grpc.types import ExecuteRunArgs  # the argument of that command
from dagster_shared.serdes import deserialize_value, serialize_value  # which it takes as text

RUN_MODULES = ("dagster._core.execution.api", "dagster_postgres")
"""Modules of Dagster that a run imports late, all without side effects."""


def job_in(arguments: str, module: str) -> str | None:
    """Returns the name of a run's job, from what :func:`execute_run` takes.

    None: the code location is not that module as it stands, so nobody knows what else of it the run needs.
    """
    job = deserialize_value(arguments, ExecuteRunArgs).job_origin
    pointer = job.repository_origin.code_pointer
    return job.job_name if isinstance(pointer, ModuleCodePointer) and pointer.module == module else None


def execute_run(arguments: str) -> None:
    execute_run_command.main([arguments], standalone_mode=False)


def dagster_daemon(workspace: Path) -> Callable[[], None]:
    """Returns what runs ``dagster-daemon run`` in this process, with its imports done."""
    from dagster._daemon.cli import run_command  # noqa: PLC0415 - takes seconds; what `dagster-daemon run` runs

    return lambda: run_command.main(["-w", str(workspace)], standalone_mode=False)


_RELOAD_SECONDS = 600


def reload_code_server(socket: str) -> None:
    """Has a ``dagster code-server`` load its code again; fronts and daemons notice it."""
    from dagster._grpc.client import DagsterGrpcClient  # noqa: PLC0415 - takes seconds; how Dagster's UI reloads one

    DagsterGrpcClient(socket=socket).reload_code(timeout=_RELOAD_SECONDS)


class RunLauncher(dg.DefaultRunLauncher):
    @property
    def instance(self) -> dg.DagsterInstance:
        return self._instance

    def takes(self, location: Mapping[str, Any]) -> bool:
        """Whether the subclass launches the runs of a code location with that metadata."""
        raise NotImplementedError

    def start(self, run_id: str, arguments: str) -> None:
        raise NotImplementedError

    def launch_run(self, context: LaunchRunContext) -> None:
        run = context.dagster_run
        if run.job_code_origin is None or not self.takes(_location_metadata(context)):
            super().launch_run(context)
            return
        arguments = ExecuteRunArgs(run.job_code_origin, run.run_id, self._instance.get_ref())
        self.start(run.run_id, serialize_value(arguments))

    def is_followed_by_dagster(self, run: dg.DagsterRun) -> bool:
        return GRPC_INFO_TAG in run.tags


def to_be_started(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    """Runs that a launcher of ours was asked to start and that have not begun; code servers follow the others."""
    if not isinstance(instance.run_launcher, RunLauncher):
        return []
    records = instance.get_run_records(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTING]))
    return [one.dagster_run for one in records if GRPC_INFO_TAG not in one.dagster_run.tags]


def _location_metadata(context: LaunchRunContext) -> Mapping[str, Any]:
    origin = context.dagster_run.remote_job_origin
    if origin is None or context.workspace is None:
        return {}
    repository = origin.repository_origin
    location = context.workspace.get_code_location(repository.code_location_origin.location_name)
    found = location.get_repository(repository.repository_name).repository_snap.metadata or {}
    return {key: value.value for key, value in found.items()}
