"""A command that is told to end, and cannot: it ends itself."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import click
import pytest

from falcon_assets.surface.cli.main import main
from falcon_assets.surface.cli.shutdown import CLEAN_UP_SECONDS, GRACE_SECONDS, ends_in_time

DEAF = """
import signal, time
from falcon_assets.surface.cli import shutdown

def clean_up():
    print("cleaned up", flush=True)
    time.sleep(CLEANS_UP_FOR)

shutdown.GRACE_SECONDS, shutdown.CLEAN_UP_SECONDS = 0, PATIENCE
with shutdown.ends_in_time("last words", clean_up):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    print("deaf", flush=True)
    while True:
        time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
@pytest.mark.parametrize(
    ("cleans_up_for", "patience", "said"),
    [(0, 600, "cleaned up\nlast words\n"), (600, 0, "last words\n")],
    ids=["cleans up", "cleans up for too long"],
)
def test_what_does_not_end_in_time_is_ended(
    number: signal.Signals, cleans_up_for: int, patience: int, said: str
) -> None:
    program = DEAF.replace("CLEANS_UP_FOR", str(cleans_up_for)).replace("PATIENCE", str(patience))
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "deaf\n"
        child.send_signal(number)
        try:
            out, _ = child.communicate(timeout=120)
        finally:
            child.kill()
    assert said in out
    assert child.returncode == 128 + number


def test_both_together_are_the_ten_seconds_that_users_are_told() -> None:
    assert GRACE_SECONDS + CLEAN_UP_SECONDS < 10


IGNORES = """
import signal
for number in (signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)  # as `nohup falcon run &` in a script does
from falcon_assets.surface.cli import shutdown

with shutdown.ends_in_time("last words", lambda: None):
    signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGHUP)
    print("goes on", flush=True)
    signal.raise_signal(signal.SIGTERM)
"""


def test_what_was_started_to_be_ignored_stays_so() -> None:
    done = subprocess.run([sys.executable, "-c", IGNORES], capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout == "goes on\n"
    assert done.stderr.splitlines()[-1] == "KeyboardInterrupt"  # of the one that nobody ignores


def test_who_calls_main_goes_on_after_it() -> None:
    """What ends a process that workflows keep is armed by the program alone: tests, for one, call ``main``."""

    @click.command("computes")
    def computes() -> None:
        with ends_in_time("last words", lambda: None):
            pass

    with pytest.raises(SystemExit):
        main(computes)
    assert "ends soon" not in {one.name for one in threading.enumerate()}
