"""A process that has run workflows ends whatever they left running in it."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import atexit, sys, threading, time
from falcon_assets.history.platform import process_end

process_end.THREAD_SECONDS, process_end.EXIT_SECONDS = 0, 0
LEFT
sys.stdout.write("1 instance succeeded\\n")
process_end.ends_soon(3, lambda: sys.stdout.write("cleaned up\\n"))
sys.exit(3)
"""


@pytest.mark.parametrize(
    ("left", "said"),
    [
        pytest.param(
            'threading.Thread(target=time.sleep, args=(600,), name="poller").start()',
            "threads that it started (poller)",
            id="thread",
        ),
        pytest.param("atexit.register(time.sleep, 600)", "what it registered for the exit (atexit)", id="atexit"),
    ],
)
def test_what_workflows_leave_running_ends_with_the_process(left: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("LEFT", left)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 3
    assert sorted(done.stdout.splitlines()) == ["1 instance succeeded", "cleaned up"]
    assert done.stderr == f"A workflow has left something running: {said}; it was ended with this process.\n"
