"""A tick that evaluates SLAs over 100,000 open instances, with little and with much history."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Line

BAR_SECONDS = 0.5
FEEDS, PROCESSES, OPEN_HOURS = 250, 250, 200
_CLUSTER = """\
kind: cluster
name: primary
interfaces: {write: {endpoint: data}, execute: {endpoint: "local[2]"}}
"""
_FEED = """\
---
kind: feed
name: feed-{number}
frequency: hours(1)
availability_flag: _SUCCESS
sla: {{low: hours(1), high: hours(2)}}
locations: {{data: "/{number}/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: 2015-01-01T00:00Z}}}}]
schedule: true
"""
_PROCESS = """\
---
kind: process
name: process-{number}
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: 2015-01-01T00:00Z}}}}]
frequency: hours(1)
sla: {{should_start_in: hours(1), should_end_in: hours(2)}}
workflow: {{engine: spark-sql, path: nothing.sql}}
schedule: true
"""


def measure() -> list[Line]:
    """Every open instance breaches both levels; nothing is compared, for Dagster alone has nothing like it."""
    ticks = _measured()
    instances = (FEEDS + PROCESSES) * OPEN_HOURS
    busy = f"SLA tick over {instances:,} open instances, in which {FEEDS + PROCESSES:,} become due for each level"
    return [
        Line(f"{busy} and {FEEDS:,} come", tuple(ticks["busy"]), bar=BAR_SECONDS),
        Line("  the same after 1,000,000 instances that came", tuple(ticks["busy, history"]), bar=BAR_SECONDS),
        Line("  when nothing has happened", tuple(ticks["quiet"]), bar=BAR_SECONDS),
        Line("  after 1,000,000 instances that came", tuple(ticks["quiet, history"]), bar=BAR_SECONDS),
        Line("  once after a load: what is not declared any more", tuple(ticks["review"])),
        Line("  20,000 that became due while nobody looked", tuple(ticks["catching up"])),
    ]


def _measured() -> dict[str, list[float]]:
    with tempfile.TemporaryDirectory() as folder:
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("FALCON_", "DAGSTER_"))}
        environ |= {"FALCON_HOME": f"{folder}/home", "FALCON_ENTITY_DEFS": f"{folder}/entities"}
        environ |= {"FALCON_CLOCK": "2013-01-01T00:00Z"}
        _write(Path(folder, "entities"))
        command = [sys.executable, "-m", "benchmarks.sla_ticks"]
        done = subprocess.run(command, env=environ, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"sla_ticks failed:\n{done.stderr[-4000:]}")
    ticks: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return ticks


def _write(root: Path) -> None:
    root.mkdir(parents=True)
    feeds = [_FEED.format(number=number) for number in range(FEEDS)]
    processes = [_PROCESS.format(number=number) for number in range(PROCESSES)]
    (root / "all.yaml").write_text("".join([_CLUSTER, *feeds, *processes]))
    (root / "nothing.sql").write_text("SELECT 1\n")
