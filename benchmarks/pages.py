"""The grid of instances: 200 entities by 500 hours, as a page of the front."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Line

ENTITIES, HOURS = 200, 500
NOW = "2013-01-21T19:30Z"
"""The 500th hour."""
BAR_SECONDS = 1.0
_CLUSTER = """\
kind: cluster
name: primary
interfaces: {write: {endpoint: data}, execute: {endpoint: "local[2]"}}
"""
_PROCESS = """\
---
kind: process
name: work-%03d
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
frequency: hours(1)
workflow: {engine: spark-sql, path: work.sql}
schedule: true
"""


def measure() -> list[Line]:
    """Dagster alone has nothing like it: its timeline shows runs, not instances."""
    with tempfile.TemporaryDirectory() as folder:
        entities = Path(folder, "entities")
        entities.mkdir()
        (entities / "work.sql").write_text("SELECT 1")
        (entities / "all.yaml").write_text(_CLUSTER + "".join(_PROCESS % number for number in range(ENTITIES)))
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("FALCON_", "DAGSTER_"))}
        environ |= {"FALCON_HOME": f"{folder}/home", "FALCON_ENTITY_DEFS": str(entities), "FALCON_CLOCK": NOW}
        command = [sys.executable, "-m", "benchmarks.pages_loop"]
        done = subprocess.run(command, env=environ, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"pages_loop failed:\n{done.stderr[-4000:]}")
    seconds: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    what = f"the grid of {ENTITIES} entities and {HOURS} hours"
    return [
        Line(f"{what}, one in 50 failed", tuple(seconds["some"]), bar=BAR_SECONDS),
        Line(f"{what}, no two cells side by side alike", tuple(seconds["all"]), bar=BAR_SECONDS),
        Line(f"{what}, nothing ran yet", tuple(seconds["none"]), bar=BAR_SECONDS),
    ]
