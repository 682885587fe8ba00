"""``make up`` from its start to Ctrl-C, on an empty FALCON_HOME with everything embedded."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import IO

import psutil
import pytest

from falcon_assets.settings import Settings
from tests.examples.sandbox import PROGRAM, copy_demo, example_environ
from tests.orchestration.platform.comers_and_goers import Crowd, shutdowns
from tests.processes import CHECKOUT, free_port
from tests.waiting import wait_until

PATIENCE = 600
SECONDS = float(os.environ.get("SERVER_USERS_SECONDS", "20"))
"""How long other processes come, use the database and are killed meanwhile; ``SERVER_USERS_SECONDS=3600``: an hour."""
SEED = int(os.environ.get("SIMULATION_SEED", "28"))
STATES = """
from falcon_assets.history.platform.open_instance import open_instance
from falcon_assets.settings import load_settings

with open_instance(load_settings()) as instance:
    print(*(run.status.value for run in instance.get_runs()))
"""
SAID = re.compile(
    r"The clock shows 2013-\S+; Ctrl-C stops\.$"
    r"|2013-\S+: landed raw-flights \d+(, raw-weather \d+)?$"
    r"|2013-\S+: flights (came late|were corrected, after the cut-off): raw-flights \S+$"
    r"|2013-\S+: [a-z-]+( from primary)? on (primary|backup) .* succeeded( \(not the first attempt\))?$"
)
"""Everything that is said while all is well."""
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


def states_of_runs(environ: dict[str, str], folder: Path) -> list[str]:
    command = [sys.executable, "-c", STATES]
    return subprocess.run(
        command, env=environ, cwd=folder, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.split()


def in_the_background(
    command: list[str], environ: dict[str, str], folder: Path, output: IO[bytes] | int
) -> subprocess.Popen[bytes]:
    """Starts it as the shell of a script does with ``&``: it ignores Ctrl-C from the beginning."""
    script = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command]
    return subprocess.Popen(script, env=environ, cwd=folder, stdout=output, stderr=subprocess.STDOUT)


def run_up(folder: Path, environ: dict[str, str], port: int) -> subprocess.CompletedProcess[str]:
    command = [*PROGRAM, "up", "--port", str(port)]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, env=environ, cwd=folder, timeout=PATIENCE
    )


@pytest.mark.soak
def test_hours_land_and_are_computed_until_ctrl_c_and_nothing_is_left(tmp_path: Path) -> None:
    home, port = tmp_path / "home", free_port()
    for name in ("dagster.yaml", "workspace.yaml"):
        shutil.copy(CHECKOUT / name, tmp_path)
    server = f"sc://127.0.0.1:{free_port()}"
    definitions = copy_demo(tmp_path, primary=server, backup=server)
    environ = example_environ(FALCON_HOME=str(home), FALCON_ENTITY_DEFS=str(definitions))
    log = tmp_path / "up.log"
    with log.open("wb") as output:
        up = in_the_background([*PROGRAM, "up", "--port", str(port)], environ, tmp_path, output)
    try:

        def computed() -> bool:
            assert up.poll() is None, log.read_text()
            return any((home / "data/primary/delays/hourly").rglob("_SUCCESS"))

        wait_until(computed, PATIENCE, log.read_text)
        wait_until(lambda: len(LANDED.findall(log.read_text())) > 1, PATIENCE, log.read_text)  # the clock moves on
        crowd = Crowd(home, 6, SECONDS, random.Random(SEED))
        crowd.play()
        assert (shutdowns(home), crowd.failures) == (0, []), crowd.ended
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/server_info") as response:
            assert response.status == 200
        assert run_up(tmp_path, environ, port).stderr == (
            f"Error: port {port} on 127.0.0.1 cannot be used (Address already in use): stop what listens there, "
            f"or choose another one, for example {port % 65535 + 1}\n"
        )
        assert run_up(tmp_path, environ, free_port()).stderr == (
            f"Error: make up runs already on FALCON_HOME {home}: end it with Ctrl-C first\n"
        )
        up.send_signal(signal.SIGINT)
        assert up.wait(PATIENCE) == 0
    finally:
        up.terminate()
        up.wait(PATIENCE)
    lines = log.read_text().splitlines()
    assert lines[:2] == [
        f"Dagster's UI: http://127.0.0.1:{port} (in half a minute: Spark and Dagster are starting)",
        f"What they say: {home / 'up.log'}",
    ]
    assert [line for line in lines[2:] if not SAID.match(line)] == [
        "Dagster's UI is there.",
        "Stopping: what runs now is interrupted, and goes on the next time.",
        "Stopped.",
    ]
    assert re.search(r"^2013-01-02T\d\d:\d\dZ: hourly-delays on primary .* succeeded$", log.read_text(), re.MULTILINE)
    assert (home / "up.log").stat().st_mode & 0o777 == 0o600
    assert (shutdowns(home), family_of(home)) == (1, [])
    ended = set(states_of_runs(environ, tmp_path))
    assert "SUCCESS" in ended
    assert ended <= {"SUCCESS", "CANCELED", "QUEUED"}  # what was interrupted is no failure


def test_a_background_job_of_a_script_ends_on_sigterm_while_it_starts(tmp_path: Path) -> None:
    home, server = tmp_path / "home", f"sc://127.0.0.1:{free_port()}"
    definitions = copy_demo(tmp_path, primary=server, backup=server)
    environ = example_environ(FALCON_HOME=str(home), FALCON_ENTITY_DEFS=str(definitions))
    up = in_the_background([*PROGRAM, "up", "--port", str(free_port())], environ, tmp_path, subprocess.PIPE)
    assert up.stdout is not None
    assert up.stdout.readline().startswith(b"Dagster's UI: http://127.0.0.1:")
    up.terminate()
    said, _ = up.communicate(timeout=PATIENCE)
    assert (up.returncode, said.decode().splitlines()[-2:]) == (
        0,
        ["Stopping: what runs now is interrupted, and goes on the next time.", "Stopped."],
    )
    assert family_of(home) == []


@pytest.fixture
def environ(settings: Settings, tmp_path: Path) -> dict[str, str]:
    return example_environ(
        FALCON_HOME=str(tmp_path / "home"),
        FALCON_ENTITY_DEFS=str(copy_demo(tmp_path, primary="local[1]")),
        FALCON_DATABASE_URL=settings.database_url or "",
    )


@pytest.mark.soak
def test_it_ends_with_dagster(environ: dict[str, str], tmp_path: Path) -> None:
    done = run_up(tmp_path, environ, free_port())  # there is no workspace in that folder
    assert done.returncode == 1
    said = done.stderr.splitlines()
    log = tmp_path / "home" / "up.log"
    assert said[0] == f"Error: dagster dev ended by itself, with exit code 2; the last lines of {log}:"
    assert said[-1] == log.read_text().splitlines()[-1]
    assert family_of(tmp_path / "home") == []


def test_a_clock_that_stands_still_is_one_sentence(environ: dict[str, str], tmp_path: Path) -> None:
    done = run_up(tmp_path, environ | {"FALCON_CLOCK": "2013-01-02T00:00Z"}, free_port())
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "Error: make up needs a clock that runs: FALCON_CLOCK=2013-01-02T00:00Z@120x, or none at all\n"
    )
