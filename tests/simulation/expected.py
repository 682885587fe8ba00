"""What the oracle says about instances."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

ProcessKey = tuple[str, str, datetime]  # process, cluster, nominal time


@dataclass(frozen=True)
class Present:
    """What a feed instance is known to hold: its version, when it was seen, whether a late rerun published it.

    Where it landed, ``unseen`` is the tick before that: it came later. None = there was none, or it was published.
    """

    version: str
    seen: datetime
    cascade: bool = False
    unseen: datetime | None = None

    def may_be_found_at(self, check: datetime) -> bool:
        return self.seen <= check or (self.unseen is not None and self.unseen < check)


@dataclass(frozen=True)
class Change:
    """A listed input instance that holds something else than what was consumed (None = it was absent)."""

    input: str
    feed: str
    instance: datetime
    consumed: str | None
    present: str | None


@dataclass
class Run:
    """One time that the workflow of an instance was started."""

    at: datetime
    succeeded: bool
    read: dict[tuple[str, datetime], str | None]
    causes: list[Change] = field(default_factory=list)
    workflow: str = ""  # the input whose late workflow ran; empty = the normal workflow

    @property
    def late(self) -> bool:
        return bool(self.causes)


@dataclass
class Expected:
    """One process instance: how it ends and what happened to it on the way."""

    opens: datetime  # when it may run, or be tried again
    state: str = "WAITING"
    settled: bool = False
    ended: datetime | None = None  # when it failed or timed out last
    failures: int = 0  # in a row
    runs: list[Run] = field(default_factory=list)
    causes: list[Change] = field(default_factory=list)  # of a late run that failed and is to be tried again
    too_late: set[Change] = field(default_factory=set)

    def last_success(self) -> Run:
        return next(run for run in reversed(self.runs) if run.succeeded)
