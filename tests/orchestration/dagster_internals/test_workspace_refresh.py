"""The daemon reads a location again where its server is another one, and only there."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import GrpcServerTarget
from dagster._daemon.controller import DagsterDaemonController

from falcon_assets.history.dagster_internals import workspace_refresh
from falcon_assets.history.dagster_internals.workspace_refresh import read_only_other_servers
from tests.own_time import OwnTime
from tests.processes import free_port, listens
from tests.waiting import wait_until

CODE = "import dagster as dg\ndefs = dg.Definitions(assets=[dg.AssetSpec('x')])\n"
MINUTE = 61.0


@contextmanager
def code_server(folder: Path, port: int) -> Iterator[None]:
    (folder / "location.py").write_text(CODE)
    command = [sys.executable, "-m", "dagster", "api", "grpc", "-f", "location.py", "-p", str(port), "-h", "127.0.0.1"]
    process = subprocess.Popen(command, cwd=folder)
    try:
        wait_until(lambda: listens(port), 120)
        yield
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def patched(monkeypatch: pytest.MonkeyPatch) -> OwnTime:
    original = getattr(DagsterDaemonController.check_workspace_freshness, "__wrapped__", None)
    if original is not None:  # by another test of the same process
        monkeypatch.setattr(DagsterDaemonController, "check_workspace_freshness", original)
    monkeypatch.setattr(
        DagsterDaemonController, "check_workspace_freshness", DagsterDaemonController.check_workspace_freshness
    )
    read_only_other_servers()
    read_only_other_servers()
    time = OwnTime(1e9)
    monkeypatch.setattr(workspace_refresh, "time", time)
    monkeypatch.setattr("dagster._daemon.controller.get_current_timestamp", time.time)
    return time


def test_a_location_is_read_again_when_its_server_is_another_one(tmp_path: Path, patched: OwnTime) -> None:
    port = free_port()
    target = GrpcServerTarget(host="127.0.0.1", port=port, socket=None, location_name="x")
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        with code_server(tmp_path, port):
            context = WorkspaceProcessContext(instance, target)
            daemon: Any = SimpleNamespace(
                _workspace_process_context=context, _grpc_server_registry=None, _logger=logging.getLogger("x")
            )
            first = location_of(context)
            said = patched.now
            for _ in range(5):
                patched.now += MINUTE
                said = DagsterDaemonController.check_workspace_freshness(daemon, said)
                assert said == patched.now
            assert location_of(context) is first
            patched.now += 1800
            DagsterDaemonController.check_workspace_freshness(daemon, said)
            assert location_of(context) is not first
        with code_server(tmp_path, port):
            before = location_of(context)
            patched.now += MINUTE
            DagsterDaemonController.check_workspace_freshness(daemon, said)
            assert location_of(context) is not before
        context.__exit__(None, None, None)


def location_of(context: WorkspaceProcessContext) -> object:
    (entry,) = context.create_request_context().get_code_location_entries().values()
    assert entry.code_location is not None
    return entry.code_location
