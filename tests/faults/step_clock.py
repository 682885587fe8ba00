"""One frozen clock for all processes of an installation, put forward by hand while nobody looks."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from falcon_assets.planning.clock import Clock


class StepClock(Clock):
    """Shows what stands in the file ``clock`` of the installation's home."""

    def __init__(self, home: Path) -> None:
        object.__setattr__(self, "_file", home / "clock")
        object.__setattr__(self, "_gate", home / "clock.gate")

    @property
    def origin(self) -> datetime:  # type: ignore[override]  # the field of a clock that never moves
        return datetime.fromisoformat(self._file.read_text())

    def put(self, now: datetime) -> None:
        """Puts the clock forward, for everybody at once."""
        written = self._file.with_suffix(".new")
        written.write_text(now.isoformat())
        written.replace(self._file)

    @contextmanager
    def still(self) -> Iterator[None]:
        """The clock is not put forward meanwhile; many at once."""
        with self._passed(fcntl.LOCK_SH):
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody is within :meth:`still` meanwhile. Whoever is killed there is not there any more."""
        with self._passed(fcntl.LOCK_EX):
            yield

    @contextmanager
    def _passed(self, how: int) -> Iterator[None]:
        gate = os.open(self._gate, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(gate, how)
            yield
        finally:
            os.close(gate)
