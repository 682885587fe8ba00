"""When somebody looked whether instances are ready: none of them waits in vain while nobody does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta


@dataclass(frozen=True)
class Looks:
    """When the instances of a workload were looked at; all times on the falcon clock.

    Attributes:
        last: The last look.
        woke: The look with which the last pause ended that was as long as an instance may wait; None: there was none.
        slept: The look before that pause; None: nobody had looked before.
    """

    last: datetime | None = None
    woke: datetime | None = None
    slept: datetime | None = None

    def and_at(self, now: datetime, timeout: timedelta) -> Looks:
        """The same after a look at ``now``, for instances that may wait as long as ``timeout``."""
        if self.last is None:
            return Looks(now, now)
        if self.last > now:  # the clock was set back: what was said of times that lie ahead is void
            return Looks(now, self.woke if self.woke and self.woke <= now else None, self.slept)
        if now - self.last >= timeout:
            return Looks(now, now, self.last)
        return replace(self, last=now)

    def first_since(self, moment: datetime) -> datetime:
        """The first look at what is there since a moment, as far as a pause came in between; else the moment."""
        is_in_pause = self.woke is not None and moment <= self.woke and (self.slept is None or moment > self.slept)
        return self.woke if is_in_pause and self.woke is not None else moment
