"""A scrape of metrics over the ledger of `instance-lists`: 2,000,000 instances."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.instance_lists import INSTANCES, LAST, PROCESSES, definitions
from benchmarks.measure import Line

BAR_SECONDS = 0.2


def measure() -> list[Line]:
    """Dagster alone has nothing like it."""
    with tempfile.TemporaryDirectory() as folder:
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("FALCON_", "DAGSTER_"))}
        environ |= {"FALCON_HOME": f"{folder}/home", "FALCON_ENTITY_DEFS": f"{folder}/entities", "FALCON_CLOCK": LAST}
        definitions(Path(folder, "entities"))
        command = [sys.executable, "-m", "benchmarks.metrics_loop"]
        done = subprocess.run(command, env=environ, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"metrics_loop failed:\n{done.stderr[-4000:]}")
    seconds: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    rows = PROCESSES * INSTANCES
    return [
        Line(f"metrics of a ledger of {rows:,} instances", tuple(seconds["all"]), bar=BAR_SECONDS),
        Line("  with 200,000 breaches of SLAs open", tuple(seconds["breaches"])),
        Line("  when 1,000 instances are asked why they wait", tuple(seconds["waiting"])),
        Line("falcon metrics, whole", tuple(seconds["whole"])),
    ]
