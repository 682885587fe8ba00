"""``falcon up`` (``make up``) from its start to Ctrl-C, on an empty FALCON_HOME with everything embedded."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import urllib.request
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from falcon_assets.settings import Settings
from tests.demo_definitions import copy_demo
from tests.processes import CHECKOUT, FALCON, environ_with, free_port
from tests.waiting import wait_until

PATIENCE = 600
LANDED = re.compile(r"^2013-01-02T\d\d:\d\dZ: landed raw-flights \d+", re.MULTILINE)


def family_of(home: Path) -> list[str]:
    """The processes that live with this FALCON_HOME, and its database server."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            line = " ".join(process.cmdline())
            if process.environ().get("FALCON_HOME") == str(home) or str(home / "postgres") in line:
                found.append(line)
    return found


def run_up(folder: Path, environ: dict[str, str], port: int) -> subprocess.CompletedProcess[str]:
    command = [FALCON, "up", "--port", str(port)]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, env=environ, cwd=folder, timeout=PATIENCE
    )


def test_hours_land_and_are_computed_until_ctrl_c_and_nothing_is_left(tmp_path: Path) -> None:
    home, port = tmp_path / "home", free_port()
    for name in ("dagster.yaml", "workspace.yaml"):
        shutil.copy(CHECKOUT / name, tmp_path)
    server = f"sc://127.0.0.1:{free_port()}"
    definitions = copy_demo(tmp_path, primary=server, backup=server)
    environ = environ_with(FALCON_HOME=str(home), FALCON_ENTITY_DEFS=str(definitions))
    log = tmp_path / "up.log"
    with log.open("wb") as output:
        up = subprocess.Popen(
            [FALCON, "up", "--port", str(port)], env=environ, cwd=tmp_path, stdout=output, stderr=subprocess.STDOUT
        )
    try:

        def computed() -> bool:
            assert up.poll() is None, log.read_text()
            return any((home / "data/primary/delays/hourly").rglob("_SUCCESS"))

        wait_until(computed, PATIENCE, log.read_text)
        wait_until(lambda: len(LANDED.findall(log.read_text())) > 1, PATIENCE, log.read_text)  # the clock moves on
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/server_info") as response:
            assert response.status == 200
        assert run_up(tmp_path, environ, port).stderr == (
            f"Error: port {port} on 127.0.0.1 cannot be used (Address already in use): stop what listens there, "
            f"or choose another one, for example make up PORT={port % 65535 + 1}\n"
        )
        assert run_up(tmp_path, environ, free_port()).stderr == (
            f"Error: falcon up (make up) runs already on FALCON_HOME {home}: end it with Ctrl-C first\n"
        )
        up.send_signal(signal.SIGINT)
        assert up.wait(PATIENCE) == 0
    finally:
        up.terminate()
        up.wait(PATIENCE)
    lines = log.read_text().splitlines()
    assert lines[0] == f"Dagster's UI: http://127.0.0.1:{port} (in a few seconds)"
    assert lines[-1] == "Stopped."
    assert family_of(home) == []


@pytest.fixture
def environ(settings: Settings, tmp_path: Path) -> dict[str, str]:
    return environ_with(
        FALCON_HOME=str(tmp_path / "home"),
        FALCON_ENTITY_DEFS=str(copy_demo(tmp_path, primary="local[1]")),
        FALCON_DATABASE_URL=settings.database_url or "",
    )


def test_it_ends_with_dagster(environ: dict[str, str], tmp_path: Path) -> None:
    done = run_up(tmp_path, environ, free_port())  # there is no workspace in that folder
    assert done.returncode == 1
    said = done.stderr.splitlines()[-1]
    assert said == "Error: dagster dev ended by itself, with exit code 2; what it said last is above"
    assert family_of(tmp_path / "home") == []


def test_a_clock_that_stands_still_is_one_sentence(environ: dict[str, str], tmp_path: Path) -> None:
    done = run_up(tmp_path, environ | {"FALCON_CLOCK": "2013-01-02T00:00Z"}, free_port())
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "Error: falcon up needs a clock that runs: FALCON_CLOCK=2013-01-02T00:00Z@120x, or none at all\n"
    )
