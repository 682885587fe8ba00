"""Which tests go together, and which come first: all workers shall end at the same time."""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling

LONGEST_FIRST = (
    "tests/faults/test_kills.py",
    "tests/simulation/test_two_weeks.py",
    "tests/faults/test_silent_backends.py",
    ("tests/spark", "tests/engines"),  # all on one kind of cluster, then all on the next
    "tests/docs",
    "tests/examples/test_up.py",
    "tests/examples/test_demo.py",
    "tests/test_component.py",
    "tests/cli/test_run_command.py",
    "tests/orchestration/test_dagster_commands.py",
    "tests/faults/test_dead_runs.py",
    "tests/orchestration/coordination/test_coordinator.py",
    "tests/orchestration/coordination/test_late_data.py",
    "tests/orchestration/runs",
    "tests/orchestration",
    "tests/cli",
)
"""What takes longer than all that follows, as measured; the rest comes in pytest's order."""


def rank(nodeid: str) -> int:
    """The smaller, the earlier."""
    return next((place for place, name in enumerate(LONGEST_FIRST) if nodeid.startswith(name)), len(LONGEST_FIRST))


class Scheduling(LoadFileScheduling):
    """Tests of one file go together, and all that share the servers of Spark: those start once, not in each worker."""

    def _split_scope(self, nodeid: str) -> str:
        shares = nodeid.startswith(("tests/spark/", "tests/engines/"))
        return "tests/spark" if shares else super()._split_scope(nodeid)
