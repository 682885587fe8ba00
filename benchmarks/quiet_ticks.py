"""What ticks cost that find nothing new: with 100, 1,000 and 10,000 feeds, and with ten times as much history."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.hourly_graph import write_graph
from benchmarks.measure import Line

BAR = 1.5
"""Not above 1, says the issue; a tick of a few milliseconds varies by so much."""
FEEDS = (100, 1_000, 10_000)
STARTS = {25: "2013-01-02T00:10Z@1x", 241: "2013-01-11T00:10Z@1x"}
"""Hours of history behind each feed -> the clock; a day is what a collector looks at in every tick."""
KINDS = ("collector", "coordinator")


def measure() -> list[Line]:
    """A line per kind and number of feeds; where there is more history, its ticks against those with less."""
    lines = []
    for feeds in FEEDS:
        short, long = ({kind: tuple(ticks) for kind, ticks in _ticks(feeds, hours).items()} for hours in STARTS)
        for kind in KINDS:
            few, many = STARTS
            lines.append(Line(f"quiet {kind} tick, {feeds:,} feeds with {few} hours of history", short[kind]))
            lines.append(Line(f"  {many} hours of history against {few}", long[kind], short[kind], BAR))
    return lines


def _ticks(feeds: int, hours: int) -> dict[str, list[float]]:
    with tempfile.TemporaryDirectory() as folder:
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("FALCON_", "DAGSTER_"))}
        environ |= {
            "FALCON_HOME": f"{folder}/home",
            "FALCON_ENTITY_DEFS": f"{folder}/entities",
            "FALCON_CLOCK": STARTS[hours],
        }
        write_graph(Path(folder, "entities"), feeds // 2)
        command = [sys.executable, "-m", "benchmarks.quiet_ticks_loop", str(hours)]
        done = subprocess.run(command, env=environ, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"quiet_ticks_loop failed:\n{done.stderr[-4000:]}")
    ticks: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return ticks
