"""Threads of code servers: they have four more than cores, too few for ticks that wait for something to happen.

A thread that waits costs nothing, but one that is missing makes the UI and other ticks wait. How many a code server
has is known where a process with our storage started it, such as ``dagster dev``: it inherits the environment.
"""

from __future__ import annotations

import os

import dagster as dg

from falcon_assets.settings import code_server_threads, give_code_servers

_THREADS = 64
_AT_START = code_server_threads()
_KEPT_FREE = 4
"""Of the threads in which the daemon ticks sensors: those that wait for nothing need some, too."""


def make_room() -> None:
    """For the code servers that this process starts, unless the user said how many threads they have."""
    give_code_servers(_THREADS)


def waiting_ticks(instance: dg.DagsterInstance) -> int:
    """How many ticks may wait at a time in this code server."""
    said = instance.get_sensor_settings()
    ticking = int(said.get("num_workers") or 1) if said.get("use_threads") else 1
    of_server = [one or min(32, (os.cpu_count() or 1) + 4) for one in _AT_START]
    return max(1, min(min(of_server) // 2, ticking - _KEPT_FREE))
