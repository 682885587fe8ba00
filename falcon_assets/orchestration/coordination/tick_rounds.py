"""Several rounds within a tick of a sensor, because Dagster begins a tick every five seconds at most."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

from falcon_assets.planning.time.clock import Clock

INTERVAL_SECONDS = 4
"""Between the beginnings of two ticks at least; Dagster's loop over all sensors makes five of it."""
_TICK_SECONDS = 4.5
"""How long a tick begins new rounds: until just before the next tick."""
_PAUSE_SECONDS = 0.5
_SHARE = 20
"""Rounds take one part in so many of the time at most, so that a round that takes long is not repeated."""
_waiting = threading.BoundedSemaphore(min(32, (os.cpu_count() or 1) + 4) // 2)
"""Ticks that wait: each needs a thread of the code server, which has (cores + 4), and needs them for the UI too."""


def rounds(clock: Clock) -> Iterator[None]:
    """Yields when it is time for a round: at once, and then every half second until the tick has to end.

    Only once where the clock stands still, where rounds take long, or where too many ticks wait already.
    """
    end = time.monotonic() + _TICK_SECONDS
    began = time.monotonic()
    yield
    stands_still = clock.origin is not None and not clock.runs
    if stands_still or not _waiting.acquire(blocking=False):
        return
    try:
        while True:
            pause = max(_PAUSE_SECONDS, (_SHARE - 1) * (time.monotonic() - began))
            if time.monotonic() + pause > end:
                return
            time.sleep(pause)
            began = time.monotonic()
            yield
    finally:
        _waiting.release()
