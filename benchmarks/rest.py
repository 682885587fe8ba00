"""REST over 2,000,000 instances: a list of 50, as a client waits for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.instance_lists import LAST, definitions
from benchmarks.measure import Line

BAR_SECONDS = 0.05
COUNTED = "  with their number"
"""Told for information: it grows with the history."""
LISTS = {
    "REST: 50 of 2,000,000 instances": "/instances?limit=50&uncounted=true",
    COUNTED: "/instances?limit=50",
    "REST: 50 FAILED of one process": "/instances?name=work-00&filter=state=FAILED&limit=50",
    "REST: the newest 50 of all": "/instances?sort=-instance&limit=50&uncounted=true",
}


def measure() -> list[Line]:
    """The whole request, over a socket."""
    with tempfile.TemporaryDirectory() as folder:
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("FALCON_", "DAGSTER_"))}
        environ |= {
            "FALCON_HOME": f"{folder}/home",
            "FALCON_ENTITY_DEFS": f"{folder}/entities",
            "FALCON_CLOCK": LAST,
        }
        definitions(Path(folder, "entities"))
        command = [sys.executable, "-m", "benchmarks.rest_loop"]
        done = subprocess.run(command, env=environ, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"rest_loop failed:\n{done.stdout[-1000:]}{done.stderr[-4000:]}")
    seconds: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return [Line(name, tuple(found), bar=None if name == COUNTED else BAR_SECONDS) for name, found in seconds.items()]
