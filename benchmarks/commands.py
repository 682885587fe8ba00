"""CPU seconds of whole commands, with few and with thousands of entities; the clock on the wall tells of other work."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.entities import write_entities
from benchmarks.measure import Line

FEW, MANY = 2, 2000
"""Feeds, and as many processes."""
BAR_SECONDS = 1.0
ROUNDS = 3
_COMMANDS = (
    "--help",
    "entity list",
    "instance list process-1",
    "instance status process-1",
    "instance triage process-1 2013-01-01T01:00Z",
    "admin status",
    "doctor",
)
_PROGRAM = "from falcon_assets.surface.cli.main import main; main()"


def measure() -> list[Line]:
    """User and system time of each command, with the start of Python; the database is the embedded one, and idle."""
    return [
        Line(f"falcon {command}, {2 * number:,} entities, CPU", seconds, bar=BAR_SECONDS)
        for number in (FEW, MANY)
        for command, seconds in _measured(number).items()
    ]


def _measured(number: int) -> dict[str, tuple[float, ...]]:
    with tempfile.TemporaryDirectory() as folder:
        write_entities(Path(folder, "entities"), number, number)
        left_out = ("FALCON_", "DAGSTER_", "PYTHONDONTWRITEBYTECODE")  # else each command compiles all that it imports
        environ = {key: value for key, value in os.environ.items() if not key.startswith(left_out)}
        environ |= {
            "FALCON_HOME": f"{folder}/home",
            "FALCON_ENTITY_DEFS": f"{folder}/entities",
            "FALCON_CLOCK": "2013-01-01T03:00Z",
        }
        _seconds("instance list process-1", environ)  # the first one makes the database
        return {command: tuple(_seconds(command, environ) for _ in range(ROUNDS)) for command in _COMMANDS}


def _seconds(command: str, environ: dict[str, str]) -> float:
    """Of one that may find something wrong: nothing runs there."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", _PROGRAM, *command.split()], env=environ, check=False, stdout=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
