"""Files, folders and functions of the package that three acts pass through."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path

from benchmarks.measure import Line

BARS = {"instance rerun": (83, 21, 302), "eviction": (59, 19, 192), "landing pass": (75, 20, 280)}
"""Files, folders and functions of each."""
WHAT = ("files", "folders", "functions")
_ENTITIES = """\
kind: cluster
name: primary
interfaces: {write: {endpoint: data}, execute: {endpoint: "local[2]"}}
---
kind: feed
name: raw
frequency: hours(1)
availability_flag: _SUCCESS
locations: {data: "/raw/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
schedule: true
---
kind: feed
name: unread
frequency: hours(1)
availability_flag: _SUCCESS
locations: {data: "/unread/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
clusters:
  - name: primary
    validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}
    retention: {limit: hours(4)}
schedule: true
---
kind: feed
name: made
frequency: hours(1)
availability_flag: _SUCCESS
locations: {data: "/made/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
---
kind: process
name: work
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
frequency: hours(1)
inputs: [{name: raw, feed: raw, start: "now(0,0)", end: "now(0,0)"}]
outputs: [{name: made, feed: made, instance: "now(0,0)"}]
workflow: {engine: spark-sql, path: work.sql}
schedule: true
"""


def measure() -> list[Line]:
    """Counts, once, as they are the same each time; a bar is two thirds of what it was before the redesign."""
    with tempfile.TemporaryDirectory() as folder:
        entities = Path(folder, "entities")
        entities.mkdir()
        (entities / "all.yaml").write_text(_ENTITIES)
        (entities / "work.sql").write_text("SELECT 1")
        for feed, hour in product(("raw", "unread"), range(6)):
            instance = Path(folder, f"home/data/{feed}/2013-01-01-{hour:02}")
            instance.mkdir(parents=True)
            (instance / "part.json").write_text("{}")
            (instance / "_SUCCESS").touch()
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("FALCON_", "DAGSTER_"))}
        environ |= {
            "FALCON_HOME": f"{folder}/home",
            "FALCON_ENTITY_DEFS": str(entities),
            "FALCON_CLOCK": "2013-01-01T06:00Z",
        }
        command = [sys.executable, "-m", "benchmarks.frames_loop"]
        done = subprocess.run(command, env=environ, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"frames_loop failed:\n{done.stdout[-1000:]}{done.stderr[-4000:]}")
    counts: dict[str, list[int]] = json.loads(done.stdout.splitlines()[-1])
    return [
        Line(f"{act}: {what}", (counted,), bar=bar, unit="")
        for act, bars in BARS.items()
        for what, counted, bar in zip(WHAT, counts[act], bars, strict=True)
    ]
