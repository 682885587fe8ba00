"""A limit to the bytes per second of one task."""

from __future__ import annotations

import threading
import time

MEBIBYTE = 1 << 20
_SAVED_SECONDS = 1.0
"""How much unused time may be used up later: a slow second must not become a burst."""


class Throttle:
    """Delays the threads of a task to a common rate, in mebibytes per second; None: no limit."""

    def __init__(self, rate: float | None) -> None:
        self._seconds_per_byte = 1 / (rate * MEBIBYTE) if rate else 0.0
        self._lock = threading.Lock()
        self._paid_until = time.monotonic()

    def __call__(self, size: int) -> None:
        if not self._seconds_per_byte:
            return
        with self._lock:
            now = time.monotonic()
            self._paid_until = max(self._paid_until, now - _SAVED_SECONDS) + size * self._seconds_per_byte
            wait = self._paid_until - now
        if wait > 0:
            time.sleep(wait)

    def block(self, size: int) -> int:
        """Returns the largest block, up to ``size``, after which a wait is still short."""
        if not self._seconds_per_byte:
            return size
        return max(4096, min(size, int(0.25 / self._seconds_per_byte)))
