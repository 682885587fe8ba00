"""Questions about 2,000,000 instances, and the same of as many partitions by Dagster's GraphQL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Line

PROCESSES, INSTANCES = 20, 100_000
"""Dagster advises no more partitions than that for an asset."""
FAILED_EACH = 100
"""Every so many-th instance failed; Dagster has no materialization of it. So did the last one of the first process, for
which the last ones of all others wait."""
FIRST, LAST = "2013-01-01T00:00Z", "2013-12-14T05:15Z"
"""The 100,000th five minutes."""
BAR_SECONDS, HELP_BAR_SECONDS = 1.0, 0.3
_CLUSTER = """\
kind: cluster
name: primary
interfaces: {write: {endpoint: data}, execute: {endpoint: "local[2]"}}
"""
_PROCESS = """\
---
kind: feed
name: made-%(number)02d
frequency: minutes(5)
availability_flag: _SUCCESS
locations: {data: "/made-%(number)02d/${YEAR}-${MONTH}-${DAY}/${HOUR}/${MINUTE}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
---
kind: process
name: work-%(number)02d
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
frequency: minutes(5)
%(inputs)soutputs: [{name: made, feed: made-%(number)02d, instance: "now(0,0)"}]
workflow: {engine: spark-sql, path: work.sql}
retry: {policy: final}
schedule: true
"""
_INPUTS = 'inputs: [{name: before, feed: made-%02d, start: "now(0,0)", end: "now(0,0)"}]\n'
"""Each process reads what the one before it makes."""
_QUESTIONS = {
    "status": "status: the latest 10 of 100,000; latestMaterializationByPartition of these 10",
    "list one": "list: the first 100 FAILED of one process; assetPartitionStatuses of one asset",
    "list": "list: the first 100 FAILED of all 20; assetPartitionStatuses of 20 assets",
    "triage": "triage of what waits for a chain of 20; latestMaterializationByPartition of 20 assets",
    "summary": "summary: how many are in which state; partitionStats of 20 assets",
}
_ALONE = {"--help": HELP_BAR_SECONDS, "instance --help": None, "instance status": None, "instance list": None}


def measure() -> list[Line]:
    """Both sides' history is in the same PostgreSQL, and both processes are warm: the webserver, and ours.

    Below it what whole commands take, with the start of Python.
    """
    seconds = _measured()
    lines = []
    for name, what in _QUESTIONS.items():
        ours, plain = tuple(seconds[name]), tuple(seconds[f"GraphQL: {name}"])
        lines += [Line(what, ours, plain), Line("  ours alone", ours, bar=BAR_SECONDS)]
    return lines + [Line(f"falcon {name}, whole", tuple(seconds[name]), bar=bar) for name, bar in _ALONE.items()]


def definitions(folder: Path) -> None:
    """Writes those of the processes and what they make."""
    folder.mkdir()
    (folder / "work.sql").write_text("SELECT 1")
    (folder / "all.yaml").write_text(_CLUSTER + "".join(map(_process, range(PROCESSES))))


def _process(number: int) -> str:
    return _PROCESS % {"number": number, "inputs": _INPUTS % (number - 1) if number else ""}


def _measured() -> dict[str, list[float]]:
    with tempfile.TemporaryDirectory() as folder:
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("FALCON_", "DAGSTER_"))}
        environ |= {
            "FALCON_HOME": f"{folder}/home",
            "FALCON_ENTITY_DEFS": f"{folder}/entities",
            "FALCON_CLOCK": LAST,
        }
        definitions(Path(folder, "entities"))
        command = [sys.executable, "-m", "benchmarks.instance_lists_loop"]
        done = subprocess.run(command, env=environ, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"instance_lists_loop failed:\n{done.stdout[-1000:]}{done.stderr[-4000:]}")
    seconds: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return seconds
