"""Circuit breakers: a store that does not answer is left alone for a while, longer each time."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_SECONDS, LONGEST_SECONDS = 15.0, 300.0
"""How long a store is left alone the first time, and at most; each failure in between doubles it."""
SLOW_SECONDS = 2.0
"""A failure that took so long opens a breaker at once; of quicker failures it takes two in a row."""
_QUICK_FAILURES = 2


@dataclass(frozen=True)
class Breaker:
    """What is known about whether a store answers; all times are seconds of a clock that never goes back.

    Attributes:
        failures: How often it failed since it last answered.
        opened: How often in a row it was left alone.
        until: When it may be asked again; None: at any time.
        why: How it failed last.
    """

    failures: int = 0
    opened: int = 0
    until: float | None = None
    why: str = ""

    def is_open(self, now: float) -> bool:
        """Whether the store is to be left alone. Once that is over, one failure is enough to leave it alone again."""
        return self.until is not None and now < self.until

    def failed(self, now: float, took: float, why: str) -> Breaker:
        """After the store failed at ``now``, for which it took ``took`` seconds."""
        failures = self.failures + 1
        if took < SLOW_SECONDS and failures < _QUICK_FAILURES and not self.opened:
            return Breaker(failures, why=why)
        pause = min(FIRST_SECONDS * 2 ** min(self.opened, 10), LONGEST_SECONDS)
        return Breaker(failures, self.opened + 1, now + pause, why)
