"""Why an instance that was given no run was given none, but for what coordinators wait for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from falcon_assets.model.instant import format_instant
from falcon_assets.planning.reason import Reason
from falcon_assets.planning.timeline import Timeline


@dataclass(frozen=True)
class NotScheduled(Reason):
    """Nobody has scheduled what it is an instance of."""

    entity: str

    def __str__(self) -> str:
        """A predicate."""
        return f"is not run by itself: {self.entity} is not scheduled"


@dataclass(frozen=True)
class TimePending(Reason):
    """Its time has not come."""

    until: datetime

    def __str__(self) -> str:
        """A predicate."""
        return f"is due at {format_instant(self.until)}"


@dataclass(frozen=True)
class OffTimeline(Reason):
    """The definition has no such instance any more: its frequency, start or end were others when that came to be."""

    why_not: str

    @classmethod
    def of(cls, timeline: Timeline, nominal: datetime) -> OffTimeline | None:
        """The reason, where the timeline does not have the instance."""
        return None if timeline.contains(nominal) else cls(timeline.why_not(nominal))

    def __str__(self) -> str:
        """A predicate."""
        return f"is kept as it is, and is no instance of the present definition: {self.why_not}"


@dataclass(frozen=True)
class LaunchPending(Reason):
    """Nothing is in its way."""

    def __str__(self) -> str:
        """A predicate."""
        return "is ready: its coordinator launches it at its next tick"


@dataclass(frozen=True)
class RerunRequested(Reason):
    """It is to run again.

    Attributes:
        by: Who asked; empty: late data.
        why: In the words of who asked.
        waits: Why it does not run yet; None: nothing is in its way.
    """

    by: str
    why: str
    waits: str | None

    def __str__(self) -> str:
        """A predicate."""
        asked = f"asked for by {self.by}" if self.by else "what it read has changed"
        return "is to run again: " + "; ".join(filter(None, (": ".join(filter(None, (asked, self.why))), self.waits)))


@dataclass(frozen=True)
class Undecidable(Reason):
    """Coordinators cannot say anything about what it is an instance of."""

    problem: str

    def __str__(self) -> str:
        """A predicate."""
        return f"cannot be decided on: {self.problem}"
