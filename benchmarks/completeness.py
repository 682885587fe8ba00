"""One more report of a part, among a million of them, and all windows over it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Line

BAR_SECONDS = 0.05
SLOTS, PARTS = 1_000, 1_000
LEVELS = ("minutes(10)", "hours(1)", "hours(6)", "days(1)", "months(1)")
_SPAN = "clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2015-01-01T00:00Z}}]\n"
_SLOTS = """\
kind: cluster
name: primary
interfaces: {write: {endpoint: data}, execute: {endpoint: "local[2]"}}
---
kind: feed
name: level-0
frequency: minutes(5)
completeness: {at_least: 99.995, expected: reported}
locations: {data: "/level-0/${YEAR}-${MONTH}-${DAY}/${HOUR}${MINUTE}"}
"""
_LEVEL = """\
---
kind: feed
name: level-{number}
frequency: {frequency}
rollup: {{of: [level-{below}]}}
"""


def measure() -> list[Line]:
    """Nothing is compared, for Dagster alone has nothing like it."""
    with tempfile.TemporaryDirectory() as folder:
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("FALCON_", "DAGSTER_"))}
        environ |= {"FALCON_HOME": f"{folder}/home", "FALCON_ENTITY_DEFS": f"{folder}/entities"}
        environ |= {"FALCON_CLOCK": "2014-01-01T00:00Z"}
        root = Path(folder, "entities")
        root.mkdir()
        levels = (_LEVEL.format(number=n + 1, below=n, frequency=one) + _SPAN for n, one in enumerate(LEVELS))
        (root / "all.yaml").write_text("".join([_SLOTS, _SPAN, *levels]))
        command = [sys.executable, "-m", "benchmarks.completeness_events"]
        done = subprocess.run(command, env=environ, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"completeness_events failed:\n{done.stderr[-4000:]}")
    seconds: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return [
        Line(
            f"the last of {PARTS:,} parts of a slot, among {SLOTS * PARTS:,}: folded, and its share decided",
            tuple(seconds["report"]),
            bar=BAR_SECONDS,
        ),
        Line(
            "  and what it completes of five levels of roll-ups, recorded", tuple(seconds["rollups"]), bar=BAR_SECONDS
        ),
        Line("  a pass over the roll-ups when nothing has happened", tuple(seconds["quiet"])),
    ]
