"""How many rows or bytes a second a worker may move."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass
class Pace:
    """Keeps a worker from moving more than its share; ``per_second`` None: it may move as much as it can.

    It never makes up for more than a second in which it was slower.
    """

    per_second: float | None
    _due: float = field(default_factory=time.monotonic, init=False)

    def moved(self, amount: int) -> None:
        """Sleeps until ``amount`` more, which were just moved, are within the share."""
        if self.per_second is None:
            return
        now = time.monotonic()
        self._due = max(self._due, now - 1.0) + amount / self.per_second
        if self._due > now:
            time.sleep(self._due - now)
