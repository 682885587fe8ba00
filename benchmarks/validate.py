"""How long ``falcon validate`` takes on many entities, as a whole process: ``python -m benchmarks.validate``."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.entities import FEEDS, PROCESSES, write_entities


def main() -> None:
    """Writes the entities to a temporary folder and prints the best and the worst of some runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--feeds", type=int, default=FEEDS)
    parser.add_argument("--processes", type=int, default=PROCESSES)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_entities(Path(folder), options.feeds, options.processes)
        command = [sys.executable, "-c", "from falcon_assets.cli.main import main; main()", "validate", folder]
        seconds = []
        for _ in range(options.runs):
            started = time.perf_counter()
            result = subprocess.run(command, check=True, capture_output=True, text=True)
            seconds.append(time.perf_counter() - started)
    print(result.stdout.strip())
    print(f"best {min(seconds):.2f} s, worst {max(seconds):.2f} s of {options.runs} runs")


if __name__ == "__main__":
    main()
