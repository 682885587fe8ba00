"""One face of several colos: a change in five of them against the slowest, and a list of what ten have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

from benchmarks.measure import Line

CHANGED, LISTED, ENTITIES = 5, 10, 1_000
BAR, BAR_SECONDS = 1.3, 2.0


def measure() -> list[Line]:
    """The colos are servers that answer after a moment, as those of other machines: here all would share two cores."""
    with tempfile.TemporaryDirectory() as folder:
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("FALCON_", "DAGSTER_"))}
        environ |= {"FALCON_HOME": f"{folder}/home", "FALCON_ENTITY_DEFS": f"{folder}/entities"}
        command = [sys.executable, "-m", "benchmarks.colos_loop", str(CHANGED), str(LISTED), str(ENTITIES)]
        done = subprocess.run(command, env=environ, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"colos_loop failed:\n{done.stderr[-4000:]}")
    seconds: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    found = {name: tuple(each) for name, each in seconds.items()}
    changed, listed = f"a feed is applied in {CHANGED} colos", f"{LISTED} colos with {ENTITIES:,} entities each, listed"
    return [
        Line(f"{changed}, against one of them asked alone", found["all"], found["one"], bar=BAR),
        Line(f"{changed}, against the slowest of them asked at once", found["all"], found["slowest"], bar=BAR),
        Line(f"{changed}: processor time of the front", found["all_cpu"]),
        Line(f"{changed}: processor time of those that ask them at once", found["slowest_cpu"]),
        Line(listed, found["listed"], bar=BAR_SECONDS),
        Line(f"{listed}: processor time of the front", found["listed_cpu"]),
    ]
