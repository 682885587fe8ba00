"""Programs that are kept running: small ones, and those of ``falcon serve`` as people start it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import psutil
import pytest
import requests
import yaml
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin
from dagster._core.remote_representation.code_location import GrpcServerCodeLocation

from falcon_assets.settings import Settings
from tests.builders import cluster_yaml, feed_yaml
from tests.processes import FALCON, environ_with, falcon_here, free_port
from tests.waiting import wait_until

KEEPER = """
import sys
from falcon_assets.surface.front import supervisor
supervisor.FIRST_SECONDS = 0.05
supervisor.END_SECONDS = 5.0
names = iter(sys.argv[1:])
programs = [supervisor.Program(name, [sys.executable, "-u", "-c", next(names)]) for name in names]
sys.exit(0 if supervisor.Supervisor({}, lambda line: print(line, flush=True)).keep(programs) else 1)
"""
SLEEPS = "import time\nprint('here')\ntime.sleep(600)"
FAILS = "import sys\nprint('broken')\nsys.exit(3)"
DEAF = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('here')\ntime.sleep(600)"
PARENT = """
import subprocess, sys, time
print(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid)
time.sleep(600)
"""


class Kept:
    """A process that keeps others, and what it has printed so far."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process, self._log = process, log

    @property
    def lines(self) -> list[str]:
        return self._log.read_text().splitlines()

    def found(self, pattern: str, number: int = 1) -> list[str]:
        """Waits for so many lines with it, and returns what its group has matched."""
        wait_until(lambda: len(self._matches(pattern)) >= number, 300, lambda: "\n".join(self.lines))
        return self._matches(pattern)

    def _matches(self, pattern: str) -> list[str]:
        return [found[1] for line in self.lines if (found := re.search(pattern, line))]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Kept]]:
    started: list[subprocess.Popen[str]] = []

    def start(*command: str, **options: object) -> Kept:
        log = tmp_path / f"log{len(started)}"
        with log.open("w") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, text=True, **options)  # type: ignore[call-overload]
        started.append(process)
        return Kept(process, log)

    yield start
    for one in started:
        one.send_signal(signal.SIGTERM)
        one.wait(60)


def is_there(process: str) -> bool:
    return psutil.pid_exists(int(process)) and psutil.Process(int(process)).status() != psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_all_end_together(start: Callable[..., Kept], number: signal.Signals) -> None:
    kept = start(sys.executable, "-c", KEEPER, "one", SLEEPS, "two", SLEEPS)
    kept.found(r"\| (here)", 2)
    processes = kept.found(r"is process (\d+)", 2)
    kept.process.send_signal(number)
    assert kept.process.wait(60) == 0
    assert not any(map(is_there, processes))
    assert "one    | here" in kept.lines


def test_one_that_ends_is_started_again_and_the_others_go_on(start: Callable[..., Kept]) -> None:
    kept = start(sys.executable, "-c", KEEPER, "bad", FAILS, "good", SLEEPS)
    (good,) = kept.found(r"good +\| is process (\d+)")
    waits = kept.found(r"bad +\| ended \(exit code 3\); it is started again in (\S+) s", 4)
    assert [float(one) for one in waits[:4]] == [0.05, 0.1, 0.2, 0.4]
    assert is_there(good)
    os.kill(int(good), signal.SIGKILL)
    kept.found(r"good +\| (ended \(by SIGKILL\))")
    assert len(kept.found(r"good +\| is process (\d+)", 2)) == 2


def test_a_deaf_one_is_killed_and_that_is_told(start: Callable[..., Kept]) -> None:
    kept = start(sys.executable, "-c", KEEPER, "deaf", DEAF)
    kept.found(r"\| (here)")
    (process,) = kept.found(r"is process (\d+)")
    kept.process.send_signal(signal.SIGTERM)
    assert kept.process.wait(60) == 1
    assert not is_there(process)


def test_what_a_program_has_started_ends_with_it(start: Callable[..., Kept]) -> None:
    kept = start(sys.executable, "-c", KEEPER, "parent", PARENT)
    (child,) = kept.found(r"\| (\d+)$")
    kept.process.send_signal(signal.SIGTERM)
    kept.process.wait(60)
    wait_until(lambda: not is_there(child))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--host", "0.0.0.0"), "no way to log in is configured, so everybody who reaches 0.0.0.0"),
        (("--path-prefix", "falcon"), "--path-prefix 'falcon' must begin with /"),
        (("--workspace", "none.yaml"), "none.yaml cannot be read: No such file or directory"),
        ((), "there is no dagster.yaml in"),
    ],
)
def test_what_cannot_be_served_is_said(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    (tmp_path / "workspace.yaml").write_text("load_from: [{python_file: served.py}]\n")
    done = subprocess.run(
        [FALCON, "serve", *options], cwd=tmp_path, env=environ_with(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.soak
def test_a_whole_installation_is_served_and_its_front_can_be_restarted(
    start: Callable[..., Kept], database: str, tmp_path: Path
) -> None:
    (tmp_path / "served.py").write_text(
        "import dagster as dg\n\n@dg.asset\ndef one(): ...\n\ndefs = dg.Definitions([one])\n"
    )
    (tmp_path / "workspace.yaml").write_text(
        "load_from: [{python_file: {relative_path: served.py, location_name: mine}}]\n"
    )
    storage = "storage: {custom: {module: falcon_assets.dagster_instance, class: FalconStorage, config: {}}}\n"
    (tmp_path / "dagster.yaml").write_text(storage + "telemetry: {enabled: false}\n")
    (tmp_path / "entity_defs").mkdir()
    port = free_port()
    environ = environ_with(FALCON_DATABASE_URL=database, FALCON_HOME=str(tmp_path / "home"))
    kept = start(FALCON, "serve", "--port", str(port), "--path-prefix", "/here", cwd=tmp_path, env=environ)
    kept.found(r"front +\| http://127.0.0.1:\d+/here serves only this machine: (everybody is \S+)")
    query = {"query": "{ repositoriesOrError { ... on RepositoryConnection { nodes { location { name } } } } }"}

    def locations() -> object:
        try:
            answer = requests.post(f"http://127.0.0.1:{port}/here/graphql", json=query, timeout=60)
        except requests.ConnectionError:
            return None
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    served = {"repositoriesOrError": {"nodes": [{"location": {"name": "mine"}}]}}
    wait_until(lambda: locations() == served, 300, lambda: "\n".join(kept.lines))
    (front,) = kept.found(r"front +\| is process (\d+)")
    code = kept.found(r"code +\| is process (\d+)")
    os.kill(int(front), signal.SIGTERM)
    kept.found(r"front +\| (is process \d+)", 2)
    wait_until(lambda: locations() == served, 300, lambda: "\n".join(kept.lines))
    assert all(map(is_there, code)), "the code server went on"
    assert requests.get(f"http://127.0.0.1:{port}/here/healthz", timeout=60).json() == {"status": "ok"}
    everything = psutil.Process(kept.process.pid).children(recursive=True)
    kept.process.send_signal(signal.SIGTERM)
    assert kept.process.wait(120) == 0, "\n".join(kept.lines)
    wait_until(lambda: not any(is_there(str(one.pid)) for one in everything))


def feeds_of(place: Path, instance: dg.DagsterInstance) -> set[str]:
    """The feeds that the code server at that socket has loaded."""
    origin = GrpcServerCodeLocationOrigin("localhost", socket=str(place), location_name="mine")
    with GrpcServerCodeLocation(origin, instance=instance) as location:
        (repository,) = location.get_repositories().values()
        return {key.path[-1] for key in repository.asset_graph.get_all_asset_keys()}


@pytest.mark.soak
def test_code_servers_load_what_somebody_else_has_changed(
    start: Callable[..., Kept], settings: Settings, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    settings.entity_defs.mkdir()
    (settings.entity_defs / "all.yaml").write_text(cluster_yaml("primary") + feed_yaml("first"))
    module = "load_from: [{python_module: {module_name: falcon_assets.definitions, location_name: mine}}]\n"
    (tmp_path / "workspace.yaml").write_text(module)
    storage = "storage: {custom: {module: falcon_assets.dagster_instance, class: FalconStorage, config: {}}}\n"
    (tmp_path / "dagster.yaml").write_text(storage + "telemetry: {enabled: false}\n")
    shared = {"FALCON_DATABASE_URL": settings.database_url or "", "FALCON_ENTITY_DEFS": str(settings.entity_defs)}
    machines = []
    for name in ("one", "other"):
        environ = environ_with(**shared, FALCON_HOME=str(tmp_path / name))
        kept = start(FALCON, "serve", "--only", "code", cwd=tmp_path, env=environ)
        kept.found(r"code +\| (is process)")
        (served,) = yaml.safe_load((tmp_path / name / "serve/workspace.yaml").read_text())["load_from"]
        machines.append((kept, Path(served["grpc_server"]["socket"])))
    for kept, place in machines:
        wait_until(place.exists, 300, lambda: "\n".join(kept.lines))  # noqa: B023 - asked in this round
        assert feeds_of(place, instance) == {"first"}
    falcon_here(environ_with(**shared), "entity", "submit", _written(tmp_path / "new.yaml", feed_yaml("second")))
    for kept, place in machines:
        kept.found(r"the definitions were (changed: they are reloaded)")
        assert feeds_of(place, instance) == {"first", "second"}
    _written(settings.entity_defs / "all.yaml", "kind: cluster\n")
    for kept, place in machines:
        kept.found(r"the definitions were (changed and have problems)")
        assert feeds_of(place, instance) == {"first", "second"}


def _written(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)
