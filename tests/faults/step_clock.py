"""One frozen clock for all processes of an installation, put forward by hand while no sensor is evaluated."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from falcon_assets.planning.clock import Clock

COLLECTORS, DECIDERS = "collectors", "deciders"
"""The sensors: those which find what landed, and those which decide what comes of it."""


class StepClock(Clock):
    """Shows what stands in the file ``clock`` of the installation's home."""

    def __init__(self, home: Path) -> None:
        object.__setattr__(self, "_file", home / "clock")

    @property
    def origin(self) -> datetime:  # type: ignore[override]  # the field of a clock that never moves
        return datetime.fromisoformat(self._file.read_text())

    def put(self, now: datetime) -> None:
        """Puts the clock forward, for everybody at once."""
        written = self._file.with_suffix(".new")
        written.write_text(now.isoformat())
        written.replace(self._file)

    @contextmanager
    def still(self, who: str) -> Iterator[bool]:
        """Nobody is :meth:`alone` meanwhile; many at once. False where somebody is: come again later."""
        with self._gate(who) as gate:
            try:
                fcntl.flock(gate, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    @contextmanager
    def alone(self, who: str) -> Iterator[None]:
        """None of those is within :meth:`still` meanwhile. Whoever is killed there is not there any more."""
        with self._gate(who) as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _gate(self, who: str) -> Iterator[int]:
        gate = os.open(self._file.with_suffix(f".{who}"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            yield gate
        finally:
            os.close(gate)
