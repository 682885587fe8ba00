"""Compaction of an instance of many files, side by side with what one would write for Spark: time and memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import Line, alternate

ROUNDS = 3
FILES, ROWS = 60, 50_000
TIME_BAR, MEMORY_BAR = 1.0, 0.5
MB = 1 << 20


def measure() -> list[Line]:
    """Both sides in turn, each in processes of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = _write(folder / "source")
        rounds = list(alternate(ROUNDS, lambda: _measured("falcon", folder), lambda: _measured("spark", folder)))
    ours, plain = (list(side) for side in zip(*rounds, strict=True))
    against = f"against Spark's repartitionByRange and sortWithinPartitions ({FILES} files, {size:.0f} MB)"
    return [
        Line(
            f"compact and verify {FILES * ROWS:,} rows, {against}",
            tuple(one[0] for one in ours),
            tuple(one[0] for one in plain),
            TIME_BAR,
        ),
        Line(
            "  peak of its memory, in GB, interpreters included",
            tuple(one[1] for one in ours),
            tuple(one[1] for one in plain),
            MEMORY_BAR,
        ),
    ]


def _write(folder: Path) -> float:
    folder.mkdir()
    random = np.random.default_rng(1)
    for number in range(FILES):
        columns = {
            "user_id": random.integers(0, 1 << 40, ROWS),
            "at": pa.array(random.integers(0, 1 << 50, ROWS), pa.timestamp("us", "UTC")),
            "url": pa.array([f"https://example.org/{one}/page" for one in random.integers(0, 1 << 20, ROWS)]),
            "amount": random.random(ROWS),
            "kind": pa.array(random.choice(["view", "click", "buy"], ROWS)),
        }
        if number > FILES // 2:
            columns["extra"] = pa.array(random.integers(0, 9, ROWS))
        pq.write_table(pa.table(columns), folder / f"part-{number:05d}.parquet")
    return sum(path.stat().st_size for path in folder.iterdir()) / MB


def _measured(side: str, folder: Path) -> tuple[float, float]:
    """Seconds, and the peak of its memory with that of its JVM."""
    with tempfile.TemporaryDirectory(dir=folder) as target:
        command = [sys.executable, "-m", "benchmarks.compaction_sides", side, str(folder / "source"), f"{target}/new"]
        started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        peak, tree = 0, psutil.Process(started.pid)
        while started.poll() is None:
            try:
                peak = max(peak, sum(one.memory_info().rss for one in (tree, *tree.children(recursive=True))))
            except psutil.Error:
                continue  # one has just ended
            time.sleep(0.05)
        said, _ = started.communicate()
        if started.returncode:
            raise SystemExit(f"the side {side} failed")
        return float(said), peak / 1e9
