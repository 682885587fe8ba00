"""A time that only the test moves on."""

from __future__ import annotations


class OwnTime:
    """Stands for the module ``time`` where a module imports it: sleeping takes no time, and is counted."""

    def __init__(self, now: float = 0.0) -> None:
        self.now, self.slept = now, list[float]()

    def time(self) -> float:
        return self.now

    monotonic = perf_counter = time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
