"""Why an instance is not there, beyond what coordinators say of those that wait: a class for each kind of cause."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from falcon_assets.errors import count_of
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.reason import Reason
from falcon_assets.planning.snapshots import not_refreshed


@dataclass(frozen=True)
class Failed(Reason):
    """It failed, and is not tried again; ``error`` is the first line of what went wrong."""

    error: str
    attempts: int

    def __str__(self) -> str:
        """A predicate."""
        return f"failed after {count_of(self.attempts, 'attempt')}: {self.error or 'nobody said why'}"


@dataclass(frozen=True)
class TriedAgain(Reason):
    """It failed or timed out, and is tried again by itself."""

    error: str
    attempts: int
    until: datetime

    def __str__(self) -> str:
        """A predicate."""
        return (
            f"is tried again at {format_instant(self.until)}, after {count_of(self.attempts, 'attempt')}: {self.error}"
        )


@dataclass(frozen=True)
class TimedOut(Reason):
    """It waited for its inputs in vain; ``is_there_now`` says whether it would find them today."""

    said: str
    is_there_now: bool

    def __str__(self) -> str:
        """A predicate."""
        now = "what it lacked is there now" if self.is_there_now else "it still lacks inputs"
        return f"timed out ({self.said}); {now}"


@dataclass(frozen=True)
class Stopped(Reason):
    """Somebody killed it, or it was skipped."""

    said: str

    def __str__(self) -> str:
        """A predicate."""
        return self.said


@dataclass(frozen=True)
class DoneWithout(Reason):
    """It succeeded, and what it made is not recorded any more."""

    def __str__(self) -> str:
        """A predicate."""
        return "succeeded, and what it made is not there"


@dataclass(frozen=True)
class MadeBy(Reason):
    """Processes or replications are to bring it."""

    makers: tuple[str, ...]

    def __str__(self) -> str:
        """A predicate."""
        return f"is made by {', '.join(self.makers)}"


@dataclass(frozen=True)
class NotMade(Reason):
    """What writes the feed has no instance that writes this one."""

    makers: tuple[str, ...]

    def __str__(self) -> str:
        """A predicate."""
        return f"is made by nobody: no instance of {', '.join(self.makers)} writes it"


@dataclass(frozen=True)
class NotArrived(Reason):
    """It has to come from outside, and has not.

    Attributes:
        path: Where it is expected.
        late: How long it is overdue; None: it is not.
        by: What says so.
        problem: Why the store could not be asked; empty: it was, or nobody asked it.
    """

    path: str
    late: timedelta | None
    by: str
    problem: str = ""

    def __str__(self) -> str:
        """A predicate."""
        when = f"{lasting(self.late)} late by {self.by}" if self.late is not None else f"not late by {self.by}"
        if self.problem:
            return f"is not recorded at {self.path}, {when}, and its store cannot be asked: {self.problem}"
        return f"has not come to {self.path}: {when}"


@dataclass(frozen=True)
class Incomplete(Reason):
    """Something of it has come."""

    said: str
    late: timedelta | None
    by: str

    def __str__(self) -> str:
        """A predicate."""
        when = f"; it is {lasting(self.late)} late by {self.by}" if self.late is not None else ""
        return f"has come, and is not complete: {self.said}{when}"


@dataclass(frozen=True)
class NotRefreshed(Reason):
    """The data of a snapshot feed is older than what is needed.

    Attributes:
        path: Where it lies.
        refreshed: When it was refreshed last.
        needed: When it has to be refreshed at the earliest.
        late: How long that is overdue; None: it is not.
        by: What says so.
    """

    path: str
    refreshed: datetime
    needed: datetime
    late: timedelta | None
    by: str

    def __str__(self) -> str:
        """A predicate."""
        when = f"{lasting(self.late)} late by {self.by}" if self.late is not None else f"not late by {self.by}"
        return f"is not refreshed at {self.path}: {not_refreshed(self.refreshed, self.needed)}; {when}"


@dataclass(frozen=True)
class NotRecorded(Reason):
    """It is there, and no collector has recorded it yet."""

    path: str

    def __str__(self) -> str:
        """A predicate."""
        return f"is there at {self.path}, and is not recorded yet"


@dataclass(frozen=True)
class DataEvicted(Reason):
    """Retention took it away."""

    at: datetime | None

    def __str__(self) -> str:
        """A predicate."""
        when = f" on {format_instant(self.at)}" if self.at else ""
        return f"was evicted{when}"


@dataclass(frozen=True)
class RunUnderWay(Reason):
    """A run was given it; ``said`` is how that run is."""

    run: str
    said: str

    def __str__(self) -> str:
        """A predicate."""
        return f"is in run {self.run}, which {self.said}"


@dataclass(frozen=True)
class SlotsTaken(Reason):
    """It is ready, and as many others run as may; ``taken_by`` names some of them."""

    parallel: int
    taken_by: tuple[str, ...]
    more: int

    def __str__(self) -> str:
        """A predicate."""
        more = f" and {self.more} more" if self.more else ""
        return f"waits for a free slot (parallel: {self.parallel}), which {', '.join(self.taken_by)}{more} have"


@dataclass(frozen=True)
class SensorStopped(Reason):
    """Somebody stopped the sensor."""

    def __str__(self) -> str:
        """A predicate."""
        return "is stopped: nothing is started or recorded by it"


@dataclass(frozen=True)
class TickFailed(Reason):
    """The last tick of the sensor failed."""

    error: str

    def __str__(self) -> str:
        """A predicate."""
        return f"failed at its last tick: {self.error}"


@dataclass(frozen=True)
class DaemonSilent(Reason):
    """Dagster's daemon does not run; ``silent`` is how long, where that is known."""

    silent: timedelta | None

    def __str__(self) -> str:
        """A predicate."""
        return f"has said nothing for {lasting(self.silent)}" if self.silent is not None else "has never run"


@dataclass(frozen=True)
class GoesOn(Reason):
    """The search ends here."""

    def __str__(self) -> str:
        """A predicate."""
        return "was not looked into: the search ends here"


def lasting(time: timedelta) -> str:
    """A length of time in its two largest units: ``1 d 4 h``, ``25 min``."""
    minutes = int(time.total_seconds()) // 60
    days, hours, rest = minutes // 1440, minutes // 60 % 24, minutes % 60
    parts = [(days, "d"), (hours, "h"), (rest, "min")]
    said = [f"{number} {unit}" for number, unit in parts if number][:2]
    return " ".join(said) or "less than a minute"
