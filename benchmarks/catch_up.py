"""Hours of real flights through a ``spark-sql`` process, and through a plain PySpark loop over the same files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.flights import HOURS
from benchmarks.measure import Line, Steps, alternate, line_of

BAR, TOGETHER_BAR, LONG_BAR, CAPTURE_BAR, PROVENANCE_BAR = 1.5, 0.15, 0.05, 1.03, 1.05
LONG = 1_000
ROUNDS = 3
RUNS, LOOP = "benchmarks.catch_up_runs", "benchmarks.catch_up_loop"


def measure() -> list[Line]:
    """With the work alone and with the start of the Spark session; and with the instances one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("FALCON_", "DAGSTER_"))}
        environ |= {"FALCON_HOME": f"{folder}/home", "FALCON_ENTITY_DEFS": f"{folder}/entities"}
        run(["benchmarks.flights", str(LONG)], environ)
        loop = [LOOP, f"{folder}/home/data", "local[2]", "{}"]
        rounds = list(alternate(ROUNDS, lambda: _steps([RUNS, "2"], environ), lambda: _steps(loop, environ)))
        together = list(alternate(ROUNDS, lambda: _steps([RUNS, str(HOURS)], environ), lambda: _steps(loop, environ)))
        long = [(_steps([RUNS, str(LONG), str(LONG)], environ), _longer(plain)) for _, plain in together]
        seen = list(
            alternate(ROUNDS, lambda: _steps([RUNS, "2"], environ), lambda: _steps([RUNS, "2", "unseen"], environ))
        )
        recorded = list(
            alternate(ROUNDS, lambda: _steps([RUNS, "2"], environ), lambda: _steps([RUNS, "2", "unrecorded"], environ))
        )
        one_by_one = _steps([RUNS, "1"], environ), rounds[-1][1]
    return [
        line_of(f"catch up {HOURS} instances, parallel: 2", rounds, ["work"], BAR),
        line_of(f"  by one query, parallel: {HOURS}", together, ["work"], TOGETHER_BAR),
        line_of(f"  {LONG:,} by one query; the loop's time from its {HOURS}", long, ["work"], LONG_BAR),
        line_of("  with the start of the session", rounds, ["session", "work"]),
        line_of("  with parallel: 1", [one_by_one], ["work"]),
        line_of("  with what it read and wrote captured, against without", seen, ["work"], CAPTURE_BAR),
        line_of("  with provenance and capture, against with neither", recorded, ["work"], PROVENANCE_BAR),
    ]


def _longer(loop: Steps) -> Steps:
    """What it would take for all of them, as it takes equally long for each."""
    return {**loop, "work": loop["work"] * LONG / HOURS}


def _steps(command: list[str], environ: Mapping[str, str]) -> Steps:
    """Seconds of one side, in a process of its own, with nothing written yet."""
    shutil.rmtree(Path(environ["FALCON_HOME"], "data", "delays"), ignore_errors=True)
    steps: Steps = json.loads(run(command, environ).splitlines()[-1])
    return steps


def run(command: list[str], environ: Mapping[str, str]) -> str:
    """What ``python -m`` of that command prints."""
    done = subprocess.run([sys.executable, "-m", *command], env=environ, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed:\n{done.stderr[-4000:]}")
    return done.stdout
