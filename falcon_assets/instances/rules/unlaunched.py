"""Reasons why an instance has no run, besides those for which coordinators wait."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from falcon_assets.model.instant import format_instant
from falcon_assets.planning.reason import Reason
from falcon_assets.planning.timeline import Timeline


@dataclass(frozen=True)
class NotScheduled(Reason):
    entity: str

    def __str__(self) -> str:
        return f"is not run by itself: {self.entity} is not scheduled"


@dataclass(frozen=True)
class TimePending(Reason):
    until: datetime

    def __str__(self) -> str:
        return f"is due at {format_instant(self.until)}"


@dataclass(frozen=True)
class OffTimeline(Reason):
    """The definition lacks the instance since its frequency, start or end changed."""

    why_not: str

    @classmethod
    def of(cls, timeline: Timeline, nominal: datetime) -> OffTimeline | None:
        return None if timeline.contains(nominal) else cls(timeline.why_not(nominal))

    def __str__(self) -> str:
        return f"is kept as it is, and is no instance of the present definition: {self.why_not}"


@dataclass(frozen=True)
class LaunchPending(Reason):
    def __str__(self) -> str:
        return "is ready: its coordinator launches it at its next tick"


@dataclass(frozen=True)
class RerunRequested(Reason):
    """``by`` is empty for late data; ``waits`` None: nothing holds it back."""

    by: str
    why: str
    waits: str | None

    def __str__(self) -> str:
        asked = f"asked for by {self.by}" if self.by else "what it read has changed"
        return "is to run again: " + "; ".join(filter(None, (": ".join(filter(None, (asked, self.why))), self.waits)))


@dataclass(frozen=True)
class Undecidable(Reason):
    """The workload cannot be decided on."""

    problem: str

    def __str__(self) -> str:
        return f"cannot be decided on: {self.problem}"
