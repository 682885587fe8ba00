"""One face of several colos: a change in five of them against one, and a list of what ten have."""

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
    changed = f"a feed is applied in {CHANGED} colos, against one of them asked directly"
    return [
        Line(changed, tuple(seconds["all"]), tuple(seconds["one"]), bar=BAR),
        Line(f"{LISTED} colos with {ENTITIES:,} entities each, listed", tuple(seconds["listed"]), bar=BAR_SECONDS),
    ]
