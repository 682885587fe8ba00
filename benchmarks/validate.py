"""``falcon validate`` on 1,000 feeds and 1,000 processes, as a whole process."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.entities import FEEDS, PROCESSES, write_entities
from benchmarks.measure import Line

BAR_SECONDS = 5
ROUNDS = 3


def measure() -> list[Line]:
    """Seconds from the start of the command to its end."""
    with tempfile.TemporaryDirectory() as folder:
        write_entities(Path(folder), FEEDS, PROCESSES)
        command = [sys.executable, "-c", "from falcon_assets.surface.cli.main import main; main()", "validate", folder]
        seconds = tuple(_seconds(command) for _ in range(ROUNDS))
    return [Line(f"falcon validate on {FEEDS + PROCESSES:,} entities", seconds, bar=BAR_SECONDS)]


def _seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started
