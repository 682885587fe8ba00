"""Which tests go together, which come first, and which have their turn: all workers shall end at the same time."""

from __future__ import annotations

import subprocess
import zlib
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

SPARK = ("tests/spark/", "tests/engines/")
"""All on one kind of cluster, then all on the next: its servers start once, not in each worker."""
RUNS = ("tests/orchestration/runs/", "tests/orchestration/coordination/", "tests/faults/test_dead_runs.py")
"""What executes runs in the process of the tests, in one warm session of Spark."""
LONGEST_FIRST = (
    "tests/faults/test_kills",
    "tests/simulation/test_two_weeks",
    "tests/faults/test_silent_backends.py",
    SPARK,
    RUNS,
    "tests/docs",
    "tests/examples/test_up.py",
    "tests/examples/test_demo.py",
    "tests/test_component.py",
    "tests/cli/test_run_command.py",
    "tests/orchestration/test_dagster_commands.py",
    "tests/orchestration",
    "tests/cli",
)
"""What takes longer than all that follows, as measured; the rest comes in pytest's order."""


def rank(nodeid: str) -> int:
    """The smaller, the earlier."""
    return next((place for place, name in enumerate(LONGEST_FIRST) if nodeid.startswith(name)), len(LONGEST_FIRST))


def share_of_file(nodeid: str, shares: int) -> int:
    """The share of a test: that of its file, which other files do not change; from 0."""
    return zlib.crc32(nodeid.partition("::")[0].encode()) % shares


@cache
def share_of_commit(shares: int) -> int:
    """The share that the checked out commit plays, from 0; the first one where there is no commit.

    By its name and not by its number: a checkout may have no history.
    """
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return int(done.stdout.strip() or "0", 16) % shares


class Scheduling(LoadFileScheduling):
    """Tests of one file go together, and so do all that share servers or a session of Spark."""

    def _split_scope(self, nodeid: str) -> str:
        shared = next((group[0] for group in (SPARK, RUNS) if nodeid.startswith(group)), None)
        return shared or super()._split_scope(nodeid)
