"""How long nobody acts after the active one of two daemons was killed or stood still: until its sensor ticks again.

``falcon serve`` promises half a minute. What a machine that is gone costs is what a stopped process costs, as
PostgreSQL ends the session of either when it is silent for too long.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from pathlib import Path

from benchmarks.measure import Line
from falcon_assets.history.platform.postgres import database_url
from falcon_assets.settings import load_settings
from tests.two_machines import Pair, two_machines

BAR = 30.0
KILLS, STOPS = 5, 2


def measure() -> list[Line]:
    with tempfile.TemporaryDirectory() as name:
        url = database_url(load_settings({"FALCON_HOME": name}))
        with two_machines(Path(name), url) as pair:
            killed = [_replaced(pair, signal.SIGKILL) for _ in range(KILLS)]
            stopped = [_replaced(pair, signal.SIGSTOP) for _ in range(STOPS)]
    return [
        Line("daemons: the other one acts after the active one was killed", tuple(killed), bar=BAR),
        Line("  after it stood still", tuple(stopped), bar=BAR),
    ]


def _replaced(pair: Pair, number: signal.Signals) -> float:
    active = pair.active()
    (waiting,) = (one for one in pair.machines if one is not active)
    process = active.daemon
    pair.wait(lambda: waiting.lines()[-1].partition("| ")[2].startswith("waits: process"))
    began = time.monotonic()
    os.kill(process, number)
    while pair.active() is active:
        pass
    seconds = time.monotonic() - began
    if number is signal.SIGSTOP:
        os.kill(process, signal.SIGCONT)
    pair.wait(lambda: active.daemon != process)
    return seconds
