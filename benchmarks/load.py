"""1,000 feeds and 1,000 processes as a code location: from definition files, and the same assets written by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.entities import FEEDS, PROCESSES, write_entities
from benchmarks.load_location import BY_HAND, DECLARED
from benchmarks.measure import Line, alternate, line_of

BAR = 1.15
ROUNDS = 5


def measure() -> list[Line]:
    """The whole time from the start of the interpreter, and what is left of it without imports or without jobs."""
    with tempfile.TemporaryDirectory() as folder:
        environ = {**os.environ, "FALCON_HOME": f"{folder}/home", "FALCON_ENTITY_DEFS": f"{folder}/entities"}
        environ.pop("FALCON_COLO", None)
        write_entities(Path(folder, "entities"), FEEDS, PROCESSES)
        Path(folder, "home").mkdir()  # as whoever starts a code server has made it
        require_the_same(environ)
        rounds = list(alternate(ROUNDS, lambda: _seconds(DECLARED, environ), lambda: _seconds(BY_HAND, environ)))
    return [
        line_of(f"load {FEEDS:,} feeds and {PROCESSES:,} processes", rounds, ["total"], BAR),
        line_of("  processor time", rounds, ["imports", "definitions", "jobs"]),
        line_of("  processor time without imports", rounds, ["definitions", "jobs"]),
        line_of("  processor time without resolving the jobs", rounds, ["imports", "definitions"]),
    ]


def _seconds(module: str, environ: Mapping[str, str]) -> dict[str, float]:
    """The steps of one fresh interpreter, and the total on the clock until it says that all is loaded."""
    started = time.perf_counter()
    with subprocess.Popen(_command(module), env=environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        steps: dict[str, float] = json.loads(process.stdout.readline())
        total = time.perf_counter() - started
    return {**steps, "total": total}


def _command(module: str, *options: str) -> list[str]:
    return [sys.executable, "-m", "benchmarks.load_location", module, *options]


def require_the_same(environ: Mapping[str, str]) -> None:
    """Ends with a sentence where an asset that is written by hand is not as the declared one."""
    ours, plain = (_assets(module, environ) for module in (DECLARED, BY_HAND))
    for key in ours["assets"].keys() | plain["assets"].keys():
        both = ours["assets"].get(key), plain["assets"].get(key)
        if both[0] != both[1]:
            raise SystemExit(f"location_by_hand.py does not have the same asset {key}:\n{both[0]}\n{both[1]}")
    if missing := set(plain["jobs"]) - set(ours["jobs"]):
        raise SystemExit(f"location_by_hand.py has other jobs: {sorted(missing)[:5]}")


def _assets(module: str, environ: Mapping[str, str]) -> dict[str, Any]:
    command = _command(module, "--assets")
    printed = subprocess.run(command, env=environ, check=True, stdout=subprocess.PIPE, text=True).stdout
    result: dict[str, Any] = json.loads(printed)
    return result
