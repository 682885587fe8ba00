"""Checks and profiles of two million rows, against the same by hand, Great Expectations and ``df.summary()``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Line

ROWS = 2_000_000
ROUNDS = 3
LIBRARY = "great_expectations==1.24.1"
"""Installed for the measurement only, beside what is there."""
SETTINGS = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.memory": "1g",
}


def measure() -> list[Line]:
    """All sides take turns in one Spark session; they have to find the same."""
    with tempfile.TemporaryDirectory() as folder:
        others = Path(folder, "library")
        command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--target", str(others), LIBRARY]
        subprocess.run(command, check=True)
        # Last, so that all sides have the versions of the packages that they share.
        environ = {**os.environ, "QUALITY_LIBRARY": str(others), "GX_ANALYTICS_ENABLED": "false"}
        command = [sys.executable, "-m", "benchmarks.quality_loop", f"{folder}/data", str(ROUNDS)]
        done = subprocess.run(command, env=environ, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"quality_loop failed:\n{done.stdout[-1000:]}{done.stderr[-4000:]}")
    rounds: list[dict[str, float]] = json.loads(done.stdout.splitlines()[-1])

    def line(what: str, ours: str, plain: str, bar: float) -> Line:
        return Line(what, tuple(one[ours] for one in rounds), tuple(one[plain] for one in rounds), bar)

    return [
        line("12 checks of 2,000,000 rows, against one aggregate by hand", "ours", "by_hand", 1.15),
        line("12 checks of 2,000,000 rows, against Great Expectations", "ours", "library", 0.5),
        line("profile of 2,000,000 rows, against df.summary()", "profile", "summary", 0.34),
    ]
