"""A coordinator's tick over 1,000 processes with 24 pending hours each, and Dagster's declarative automation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TypeAlias

from benchmarks.hourly_graph import write_graph
from benchmarks.measure import Line

BAR, BAR_SECONDS = 1 / 20, 1.0
PROCESSES, HOURS = 1_000, 24
_LATEST_HOUR = "2013-01-01T23:30Z"
_Tick: TypeAlias = tuple[float, int, int]
"""Seconds, instances requested, runs requested."""


def measure() -> list[Line]:
    """Both know from the database that the inputs of all 24,000 have landed, and none of them has run.

    Ours looks at all of them and admits 1,000, the oldest of each process, in runs of up to 24. ``eager()`` asks for
    the latest hour of each asset only; the line below lets both ask for everything.
    """
    ticks = _measured()
    lines = []
    for ours, plain, bar in (("ours", "eager", BAR), ("ours, no budget", "eager, every hour", None)):
        own, theirs = ticks[ours], ticks[plain]
        what = f"tick over {PROCESSES * HOURS:,} pending instances: {_requested(own[0])}; {plain} {theirs[0][1]:,}"
        lines.append(Line(what, _seconds(own), _seconds(theirs), bar))
    alone = Line("  ours alone", _seconds(ticks["ours"]), bar=BAR_SECONDS)
    fold = Line(f"  before it, once: {PROCESSES * HOURS:,} landings folded into the ledger", _seconds(ticks["fold"]))
    return [lines[0], alone, lines[1], fold]


def _requested(tick: _Tick) -> str:
    return f"{tick[1]:,} requested in {tick[2]:,} runs"


def _seconds(ticks: list[_Tick]) -> tuple[float, ...]:
    return tuple(seconds for seconds, _, _ in ticks)


def _measured() -> dict[str, list[_Tick]]:
    with tempfile.TemporaryDirectory() as folder:
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("FALCON_", "DAGSTER_"))}
        environ |= {
            "FALCON_HOME": f"{folder}/home",
            "FALCON_ENTITY_DEFS": f"{folder}/entities",
            "FALCON_CLOCK": _LATEST_HOUR,
        }
        write_graph(Path(folder, "entities"), PROCESSES)
        command = [sys.executable, "-m", "benchmarks.coordinator_tick"]
        done = subprocess.run(command, env=environ, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"coordinator_tick failed:\n{done.stderr[-4000:]}")
    ticks: dict[str, list[_Tick]] = json.loads(done.stdout.splitlines()[-1])
    return ticks
