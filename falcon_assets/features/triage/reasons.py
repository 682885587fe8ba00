"""Reasons for missing instances beyond those of coordinators: a class for each kind of cause."""

from __future__ import annotations

from datetime import datetime, timedelta

from falcon_assets.errors import count_of
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.reasons import Reason, SeenSource
from falcon_assets.planning.snapshots import not_refreshed


class Failed(Reason):
    error: str
    attempts: int

    def __str__(self) -> str:
        return f"failed after {count_of(self.attempts, 'attempt')}: {self.error or 'the reason is not recorded'}"


class TriedAgain(Reason):
    error: str
    attempts: int
    until: datetime

    def __str__(self) -> str:
        return (
            f"is tried again at {format_instant(self.until)}, after {count_of(self.attempts, 'attempt')}: {self.error}"
        )


class TimedOut(Reason):
    said: str
    is_there_now: bool

    def __str__(self) -> str:
        now = "its missing inputs are there now" if self.is_there_now else "it still lacks inputs"
        return f"timed out ({self.said}); {now}"


class Stopped(Reason, says="{said}"):
    said: str


class DoneWithout(Reason, says="succeeded, but its output is not there"):
    pass


class MadeBy(Reason, says="is made by {makers}"):
    makers: tuple[str, ...]


class NotMade(Reason, says="has no producer: no instance of {makers} writes it"):
    """No instance of the processes that write the feed writes this one."""

    makers: tuple[str, ...]


class NotArrived(Reason):
    """It has not arrived from outside; ``late`` is None where it is not overdue, ``problem`` is of its store."""

    path: str
    late: timedelta | None
    by: str
    problem: str = ""

    def __str__(self) -> str:
        when = _lateness(self.late, self.by)
        if self.problem:
            return f"is not recorded at {self.path}, {when}, and its store cannot be asked: {self.problem}"
        return f"has not come to {self.path}: {when}"


class Incomplete(Reason):
    said: str
    late: timedelta | None
    by: str

    def __str__(self) -> str:
        when = f"; it is {_lateness(self.late, self.by)}" if self.late is not None else ""
        return f"has come, and is not complete: {self.said}{when}"


class NotRefreshed(Reason):
    """A snapshot feed is older than ``needed``; ``late`` is None where that is not overdue."""

    path: str
    refreshed: datetime
    needed: datetime
    late: timedelta | None
    by: str

    def __str__(self) -> str:
        since = not_refreshed(self.refreshed, self.needed)
        return f"is not refreshed at {self.path}: {since}; {_lateness(self.late, self.by)}"


class OfAnotherColo(Reason):
    """It is made on a cluster of another colo, whose installation has a database of its own and knows why.

    ``here`` is the reason as far as it is known here.
    """

    source: SeenSource
    here: Reason

    def __str__(self) -> str:
        return f"{self.here}; {self.source}; its own installation knows more: falcon instance triage there"


class NotRecorded(Reason, says="is there at {path}, and is not recorded yet"):
    """It exists, but no collector has recorded it."""

    path: str


class DataEvicted(Reason):
    at: datetime | None

    def __str__(self) -> str:
        when = f" on {format_instant(self.at)}" if self.at else ""
        return f"was evicted{when}"


class RunUnderWay(Reason, says="is in run {run}, which {said}"):
    run: str
    said: str


class SlotsTaken(Reason):
    """It is ready, but all slots are taken; ``taken_by`` names some of the instances in them."""

    parallel: int
    taken_by: tuple[str, ...]
    more: int

    def __str__(self) -> str:
        more = f" and {self.more} more" if self.more else ""
        return f"waits for a free slot (parallel: {self.parallel}), which {', '.join(self.taken_by)}{more} have"


class SensorStopped(Reason, says="is stopped: nothing is started or recorded by it"):
    pass


class TickFailed(Reason, says="failed at its last tick: {error}"):
    error: str


class DaemonSilent(Reason):
    """Dagster's daemon does not run; ``silent`` is None where it never did."""

    silent: timedelta | None

    def __str__(self) -> str:
        return f"has logged nothing for {lasting(self.silent)}" if self.silent is not None else "has never run"


class GoesOn(Reason, says="was not looked into: the search ends here"):
    pass


def _lateness(late: timedelta | None, by: str) -> str:
    return f"{lasting(late)} late by {by}" if late is not None else f"not late by {by}"


def lasting(time: timedelta) -> str:
    """Formats the two largest units: ``1 d 4 h``, ``25 min``."""
    minutes = int(time.total_seconds()) // 60
    days, hours, rest = minutes // 1440, minutes // 60 % 24, minutes % 60
    parts = [(days, "d"), (hours, "h"), (rest, "min")]
    said = [f"{number} {unit}" for number, unit in parts if number][:2]
    return " ".join(said) or "less than a minute"
