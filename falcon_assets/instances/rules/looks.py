"""Looks at the readiness of instances: time in which no process looked does not count as waiting."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta


@dataclass(frozen=True)
class Looks:
    """Looks at a workload's instances, on the falcon clock.

    ``woke`` ended the last pause that was as long as an instance may wait, ``slept`` is the look before that; None:
    there was none.
    """

    last: datetime | None = None
    woke: datetime | None = None
    slept: datetime | None = None

    def and_at(self, now: datetime, timeout: timedelta) -> Looks:
        """``timeout``: how long instances may wait."""
        if self.last is None:
            return Looks(now, now)
        if self.last > now:  # the clock was set back: what was said of times that lie ahead is void
            return Looks(now, self.woke if self.woke and self.woke <= now else None, self.slept)
        if now - self.last >= timeout:
            return Looks(now, now, self.last)
        return replace(self, last=now)

    def first_since(self, moment: datetime) -> datetime:
        """The first look after a moment that lies in the pause; else the moment."""
        is_in_pause = self.woke is not None and moment <= self.woke and (self.slept is None or moment > self.slept)
        return self.woke if is_in_pause and self.woke is not None else moment
