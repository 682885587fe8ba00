"""Warm run workers under a real daemon: what they execute, how they end, and which runs they leave to Dagster."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import dagster as dg
import psutil
import pytest

from falcon_assets.history.mapping import run_tags
from falcon_assets.history.platform.run_launcher import WarmRunLauncher
from falcon_assets.history.platform.setup_fingerprint import SETUP, setup_fingerprint
from falcon_assets.settings import Settings, load_settings
from tests.waiting import wait_until

T = TypeVar("T")
CHECKOUT = Path(__file__).parents[3]
BIN = Path(sys.executable).parent
REQUESTS = '''
import json
import os
import time
from pathlib import Path

import dagster as dg

HERE = Path(__file__).parent
READ_AT_LOADING = (HERE / "version").read_text()


@dg.op
def wait(context: dg.OpExecutionContext) -> None:
    """Says who it is, and waits until it may end."""
    name = context.run.tags["name"]
    parent = Path(f"/proc/{os.getppid()}/cmdline").read_text().replace("\\0", " ")
    said = HERE / f"{name}.said"
    said.with_suffix(".tmp").write_text(json.dumps({"pid": os.getpid(), "parent": parent, "version": READ_AT_LOADING}))
    said.with_suffix(".tmp").rename(said)
    while not (HERE / f"{name}.go").exists():
        time.sleep(0.05)


@dg.job
def waits() -> None:
    wait()


@dg.sensor(job=waits, minimum_interval_seconds=1, default_status=dg.DefaultSensorStatus.RUNNING)
def requested():
    for request in HERE.glob("*.SUFFIX"):
        yield dg.RunRequest(run_key=request.stem, tags={"name": request.stem})


defs = dg.Definitions(jobs=[waits], sensors=[requested], executor=dg.in_process_executor)
'''
OURS = """
from falcon_assets.catalog.store import load_entities
from falcon_assets.surface.dagster.code_location import definitions_of
from falcon_assets.settings import load_settings

settings = load_settings()
defs = dg.Definitions.merge(defs, definitions_of(load_entities(settings.entity_defs), settings))
"""
WORKSPACE = """
load_from:
  - python_file: {relative_path: ours.py, location_name: ours}
  - python_file: {relative_path: plain.py, location_name: plain}
"""
ENTITIES = """
kind: cluster
name: primary
interfaces: {write: {endpoint: data}, execute: {endpoint: "local[1]"}}
"""


@dataclass(frozen=True)
class Said:
    """What the process of a run says about itself."""

    pid: int
    parent: str
    version: str


class Project:
    """A folder with a code location of ours, one that is not, and a daemon over both."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance) -> None:
        self.folder, self.instance = folder, instance
        shutil.copy(CHECKOUT / "dagster.yaml", folder)
        (folder / "workspace.yaml").write_text(WORKSPACE)
        (folder / "version").write_text("first")
        (folder / "plain.py").write_text(REQUESTS.replace("SUFFIX", "plain"))
        (folder / "ours.py").write_text(REQUESTS.replace("SUFFIX", "ours") + OURS)

    @contextmanager
    def daemon(self) -> Iterator[psutil.Popen]:
        environ = {**os.environ, "DAGSTER_HOME": str(self.folder)}
        with (self.folder / "daemon.log").open("ab") as log:
            process = psutil.Popen(
                [str(BIN / "dagster-daemon"), "run", "-w", "workspace.yaml"],
                cwd=self.folder,
                env=environ,
                stdout=log,
                stderr=log,
            )
        try:
            yield process
        finally:
            _kill([*_family(process), process])
            process.wait()

    def request(self, name: str, location: str = "ours") -> None:
        (self.folder / f"{name}.{location}").touch()

    def said(self, name: str) -> Said:
        file = self.folder / f"{name}.said"
        return Said(**self.wait(lambda: json.loads(file.read_text()) if file.exists() else None, f"{name} runs"))

    def let_go(self, name: str) -> None:
        (self.folder / f"{name}.go").touch()

    def run(self, name: str) -> dg.DagsterRun:
        (run,) = self.instance.get_runs(dg.RunsFilter(tags={"name": name}))
        return run

    def ended(self, name: str) -> dg.DagsterRunStatus:
        self.wait(lambda: self.run(name).is_finished, f"{name} ends")
        return self.run(name).status

    def messages(self, name: str) -> list[str]:
        return [entry.user_message or entry.message for entry in self.instance.all_logs(self.run(name).run_id)]

    def wait(self, condition: Callable[[], T], what: str) -> T:
        return wait_until(condition, 120, lambda: f"{what}: {(self.folder / 'daemon.log').read_text()[-4000:]}")


def _family(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)  # type: ignore[no-any-return]
    except psutil.NoSuchProcess:
        return []


@pytest.fixture(scope="module")
def project(settings: Settings, instance: dg.DagsterInstance, tmp_path_factory: pytest.TempPathFactory) -> Project:
    settings.entity_defs.mkdir()
    (settings.entity_defs / "all.yaml").write_text(ENTITIES)
    return Project(tmp_path_factory.mktemp("project"), instance)


@pytest.fixture(scope="module")
def daemon(project: Project) -> Iterator[psutil.Popen]:
    with project.daemon() as process:
        yield process


@pytest.mark.usefixtures("daemon")
def test_a_run_is_forked_and_reads_the_definitions_as_they_are(project: Project) -> None:
    project.request("first")
    said = project.said("first")
    assert ("multiprocessing.forkserver" in said.parent, said.version) == (True, "first")
    project.let_go("first")
    assert project.ended("first") is dg.DagsterRunStatus.SUCCESS
    (project.folder / "version").write_text("second")
    project.request("second")
    assert project.said("second").version == "second"
    project.let_go("second")
    assert project.ended("second") is dg.DagsterRunStatus.SUCCESS


@pytest.mark.soak
@pytest.mark.usefixtures("daemon")
def test_a_run_of_another_code_location_is_started_by_dagster(project: Project) -> None:
    project.request("foreign", "plain")
    assert "multiprocessing.spawn" in " ".join(psutil.Process(project.said("foreign").pid).cmdline())
    project.let_go("foreign")
    assert project.ended("foreign") is dg.DagsterRunStatus.SUCCESS


FORKED = """
import multiprocessing
if __name__ == "__main__":
    process = multiprocessing.get_context("forkserver").Process(target=print, args=("forked",))
    process.start()
    process.join()
"""


def test_where_its_socket_would_have_too_long_a_path_dagster_starts_runs(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher, location = WarmRunLauncher(), {SETUP: setup_fingerprint(load_settings())}
    short = "/tmp/" + "t" * 65
    monkeypatch.setattr(tempfile, "tempdir", short)
    assert launcher.takes(location)
    Path(short).mkdir(exist_ok=True)
    try:
        (tmp_path / "forked.py").write_text(FORKED)
        command = [sys.executable, str(tmp_path / "forked.py")]
        done = subprocess.run(command, env=os.environ | {"TMPDIR": short}, check=True, capture_output=True, text=True)
        assert done.stdout == "forked\n"
    finally:
        Path(short).rmdir()
    monkeypatch.setattr(tempfile, "tempdir", f"{short}t" * 2)
    assert not launcher.takes(location)


@pytest.mark.usefixtures("daemon")
def test_a_killed_worker_fails_its_run(project: Project) -> None:
    project.request("killed")
    os.kill(project.said("killed").pid, signal.SIGKILL)
    assert project.ended("killed") is dg.DagsterRunStatus.FAILURE
    assert "its process ended with exit code -9" in " ".join(project.messages("killed"))


@pytest.mark.usefixtures("daemon")
def test_a_run_is_cancelled_from_any_process(project: Project) -> None:
    project.request("cancelled")
    worker = psutil.Process(project.said("cancelled").pid)
    assert project.instance.run_launcher.terminate(project.run("cancelled").run_id)
    assert project.ended("cancelled") is dg.DagsterRunStatus.CANCELED
    assert not project.instance.run_launcher.terminate(project.run("cancelled").run_id)
    project.wait(lambda: not worker.is_running(), "the worker ends")


@pytest.mark.soak
@pytest.mark.usefixtures("daemon")
def test_what_was_queued_when_definitions_broke_is_interrupted(project: Project, settings: Settings) -> None:
    """It could not load them, and would fail instances that are none the worse for it."""
    project.request("whole")
    project.said("whole")  # so the code location is loaded
    project.let_go("whole")
    (settings.entity_defs / "all.yaml").write_text(ENTITIES.replace("name:", "nme:"))
    project.request("broken")
    project.wait(lambda: project.instance.get_runs(dg.RunsFilter(tags={"name": "broken"})), "queued")
    assert project.ended("broken") is dg.DagsterRunStatus.CANCELED
    why = "the entity definitions were changed and have problems now, which falcon validate shows"
    assert project.run("broken").tags[run_tags.INTERRUPTED] == why
    (settings.entity_defs / "all.yaml").write_text(ENTITIES)
    project.request("mended")
    project.said("mended")
    project.let_go("mended")
    assert project.ended("mended") is dg.DagsterRunStatus.SUCCESS


@pytest.mark.soak
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_workers_end_with_the_daemon(project: Project, daemon: psutil.Popen, how: signal.Signals) -> None:
    with nullcontext(daemon) if daemon.poll() is None else project.daemon() as process:
        name = f"daemon-{how.name}"
        project.request(name)
        pid = project.said(name).pid
        family = _family(process)
        forked = [one for one in family if "multiprocessing.forkserver" in " ".join(one.cmdline())]
        assert pid in [one.pid for one in forked]
        process.send_signal(how)
        for one in forked:
            project.wait(lambda one=one: not _is_alive(one), f"{one.pid} ends")
        ended = project.ended(name)
        if how is signal.SIGTERM:
            assert ended is dg.DagsterRunStatus.CANCELED
            why = "Dagster's daemon was asked to end: the run is interrupted, and its instances go on in the next run"
            assert why in project.messages(name)
            assert project.run(name).tags[run_tags.INTERRUPTED] == "Dagster's daemon was asked to end"
        else:
            assert ended is dg.DagsterRunStatus.FAILURE
        _kill(family)  # the code servers would notice only after half a minute that they are alone


def _kill(processes: Iterable[psutil.Process]) -> None:
    for one in processes:
        with suppress(psutil.NoSuchProcess):
            one.kill()


def _is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
