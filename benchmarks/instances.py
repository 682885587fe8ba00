"""Instances per minute where the work is nothing: ``falcon run``, and Dagster with one run per partition.

Ours computes all instances. Dagster's daemon is given a sample, because all of them would take it hours: its time for
all of them is extrapolated from the time between the first start and the last end.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import Line

INSTANCES, SAMPLE = 5_000, 24
_LAST = "2013-07-28T07:00Z"
"""The 5,000th hour."""
_DEFINITIONS = """\
kind: cluster
name: primary
interfaces: {write: {endpoint: data}, execute: {endpoint: "local[2]"}}
properties: {spark.driver.memory: 1g}
---
kind: feed
name: nothing
frequency: hours(1)
availability_flag: _SUCCESS
locations: {data: "/nothing/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
---
kind: process
name: idle
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
parallel: 4
frequency: hours(1)
outputs: [{name: nothing, feed: nothing, instance: "now(0,0)"}]
workflow: {engine: %s, path: idle}
schedule: true
"""
_IDLE = {
    "spark-sql": "SELECT CAST(NULL AS INT) AS nothing WHERE false\n",
    "python": """\
import pyarrow as pa
NOTHING = pa.table({"nothing": pa.array([], pa.int32())})
def run(inputs, instance):
    return NOTHING
""",
}
"""What computes nothing, by engine."""
_RUN = "from falcon_assets.surface.cli.main import main; main()"


def measure() -> list[Line]:
    """Both with their instances' records in PostgreSQL and two cores for the work."""
    plain = _plain() * INSTANCES / SAMPLE
    sampled = f"one run per partition {_per_minute(plain)}, from a sample of {SAMPLE}"
    lines = []
    for engine in _IDLE:
        ours = _ours(engine)
        said = f"{INSTANCES:,} no-op instances of {engine}: {_per_minute(ours)} a minute"
        lines.append(Line(f"{said}; {sampled}", (ours,), (plain,)))
    return lines


def _per_minute(seconds: float) -> str:
    return f"{INSTANCES / seconds * 60:,.0f}"


def _ours(engine: str) -> float:
    """Seconds of the whole command: 50 runs of 100 instances, each published and recorded on its own."""
    with tempfile.TemporaryDirectory() as folder:
        environ = _environ(folder) | {"FALCON_ENTITY_DEFS": f"{folder}/entities", "FALCON_CLOCK": _LAST}
        entities = Path(folder, "entities")
        entities.mkdir()
        (entities / "idle.yaml").write_text(_DEFINITIONS % engine)
        (entities / "idle").write_text(_IDLE[engine])
        started = time.perf_counter()
        said = _run([sys.executable, "-c", _RUN, "run"], environ, folder)
        seconds = time.perf_counter() - started
    if f"{INSTANCES} instances succeeded" not in said:
        raise SystemExit(f"falcon run did something else:\n{said[-2000:]}")
    return seconds


def _plain() -> float:
    """Seconds of the sample, from the first start of a run to the last end."""
    with tempfile.TemporaryDirectory() as folder:
        said = _run([sys.executable, "-m", "benchmarks.instances_stock", str(SAMPLE)], _environ(folder), None)
    seconds: float = json.loads(said.splitlines()[-1])
    return seconds


def _environ(folder: str) -> dict[str, str]:
    others = {key: value for key, value in os.environ.items() if not key.startswith(("FALCON_", "DAGSTER_"))}
    return others | {"FALCON_HOME": f"{folder}/home"}


def _run(command: list[str], environ: dict[str, str], folder: str | None) -> str:
    done = subprocess.run(command, env=environ, cwd=folder, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command[1:]} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout
