"""Reasons for missing instances beyond those of coordinators: a class for each kind of cause."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from falcon_assets.errors import count_of
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.reason import Reason
from falcon_assets.planning.snapshots import not_refreshed


@dataclass(frozen=True)
class Failed(Reason):
    error: str
    attempts: int

    def __str__(self) -> str:
        return f"failed after {count_of(self.attempts, 'attempt')}: {self.error or 'nobody said why'}"


@dataclass(frozen=True)
class TriedAgain(Reason):
    error: str
    attempts: int
    until: datetime

    def __str__(self) -> str:
        return (
            f"is tried again at {format_instant(self.until)}, after {count_of(self.attempts, 'attempt')}: {self.error}"
        )


@dataclass(frozen=True)
class TimedOut(Reason):
    said: str
    is_there_now: bool

    def __str__(self) -> str:
        now = "what it lacked is there now" if self.is_there_now else "it still lacks inputs"
        return f"timed out ({self.said}); {now}"


@dataclass(frozen=True)
class Stopped(Reason):
    said: str

    def __str__(self) -> str:
        return self.said


@dataclass(frozen=True)
class DoneWithout(Reason):
    def __str__(self) -> str:
        return "succeeded, and what it made is not there"


@dataclass(frozen=True)
class MadeBy(Reason):
    makers: tuple[str, ...]

    def __str__(self) -> str:
        return f"is made by {', '.join(self.makers)}"


@dataclass(frozen=True)
class NotMade(Reason):
    """No instance of the processes that write the feed writes this one."""

    makers: tuple[str, ...]

    def __str__(self) -> str:
        return f"is made by nobody: no instance of {', '.join(self.makers)} writes it"


@dataclass(frozen=True)
class NotArrived(Reason):
    """It has not arrived from outside; ``late`` is None where it is not overdue, ``problem`` is of its store."""

    path: str
    late: timedelta | None
    by: str
    problem: str = ""

    def __str__(self) -> str:
        when = f"{lasting(self.late)} late by {self.by}" if self.late is not None else f"not late by {self.by}"
        if self.problem:
            return f"is not recorded at {self.path}, {when}, and its store cannot be asked: {self.problem}"
        return f"has not come to {self.path}: {when}"


@dataclass(frozen=True)
class Incomplete(Reason):
    said: str
    late: timedelta | None
    by: str

    def __str__(self) -> str:
        when = f"; it is {lasting(self.late)} late by {self.by}" if self.late is not None else ""
        return f"has come, and is not complete: {self.said}{when}"


@dataclass(frozen=True)
class NotRefreshed(Reason):
    """A snapshot feed is older than ``needed``; ``late`` is None where that is not overdue."""

    path: str
    refreshed: datetime
    needed: datetime
    late: timedelta | None
    by: str

    def __str__(self) -> str:
        when = f"{lasting(self.late)} late by {self.by}" if self.late is not None else f"not late by {self.by}"
        return f"is not refreshed at {self.path}: {not_refreshed(self.refreshed, self.needed)}; {when}"


@dataclass(frozen=True)
class NotRecorded(Reason):
    """It exists, but no collector has recorded it."""

    path: str

    def __str__(self) -> str:
        return f"is there at {self.path}, and is not recorded yet"


@dataclass(frozen=True)
class DataEvicted(Reason):
    at: datetime | None

    def __str__(self) -> str:
        when = f" on {format_instant(self.at)}" if self.at else ""
        return f"was evicted{when}"


@dataclass(frozen=True)
class RunUnderWay(Reason):
    run: str
    said: str

    def __str__(self) -> str:
        return f"is in run {self.run}, which {self.said}"


@dataclass(frozen=True)
class SlotsTaken(Reason):
    """It is ready, but all slots are taken; ``taken_by`` names some of the instances in them."""

    parallel: int
    taken_by: tuple[str, ...]
    more: int

    def __str__(self) -> str:
        more = f" and {self.more} more" if self.more else ""
        return f"waits for a free slot (parallel: {self.parallel}), which {', '.join(self.taken_by)}{more} have"


@dataclass(frozen=True)
class SensorStopped(Reason):
    def __str__(self) -> str:
        return "is stopped: nothing is started or recorded by it"


@dataclass(frozen=True)
class TickFailed(Reason):
    error: str

    def __str__(self) -> str:
        return f"failed at its last tick: {self.error}"


@dataclass(frozen=True)
class DaemonSilent(Reason):
    """Dagster's daemon does not run; ``silent`` is None where it never did."""

    silent: timedelta | None

    def __str__(self) -> str:
        return f"has said nothing for {lasting(self.silent)}" if self.silent is not None else "has never run"


@dataclass(frozen=True)
class GoesOn(Reason):
    def __str__(self) -> str:
        return "was not looked into: the search ends here"


def lasting(time: timedelta) -> str:
    """Formats the two largest units: ``1 d 4 h``, ``25 min``."""
    minutes = int(time.total_seconds()) // 60
    days, hours, rest = minutes // 1440, minutes // 60 % 24, minutes % 60
    parts = [(days, "d"), (hours, "h"), (rest, "min")]
    said = [f"{number} {unit}" for number, unit in parts if number][:2]
    return " ".join(said) or "less than a minute"
