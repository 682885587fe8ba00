"""Reasons why an instance stays although its date lets it go: one class each, in the order in which they count."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from falcon_assets.model.frequency import Frequency
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.reason import Reason
from falcon_assets.planning.timeline import Timeline

Need: TypeAlias = Callable[[datetime], Reason | None]
"""Returns why an instance is needed; None where it is not (``{...}.get``, for example)."""


@dataclass(frozen=True)
class Keeping:
    """Context of the rules; ``settled``: ``minimum_age`` covers what landed after it (None: nothing)."""

    now: datetime
    newest: frozenset[datetime]
    keep_last: int | None
    settled: datetime | None
    minimum_age: Frequency | None
    needs: Sequence[Need]


class Keeps(Reason):
    @classmethod
    @abstractmethod
    def find(cls, at: Keeping, nominal: datetime, landed: datetime | None) -> Reason | None:
        """Returns the reason, or None where it does not apply; ``landed`` None: not known."""


@dataclass(frozen=True)
class ClockSetBack(Keeps):
    """Dated after now, but was not when it landed."""

    landed: datetime

    @classmethod
    def find(cls, at: Keeping, nominal: datetime, landed: datetime | None) -> Reason | None:
        return cls(landed) if nominal > at.now and landed is not None and landed >= nominal else None

    def __str__(self) -> str:
        return f"landed at {format_instant(self.landed)}, before the clock was set back"


@dataclass(frozen=True)
class OneOfTheNewest(Keeps):
    keep_last: int | None

    @classmethod
    def find(cls, at: Keeping, nominal: datetime, landed: datetime | None) -> Reason | None:
        return cls(at.keep_last) if nominal in at.newest else None

    def __str__(self) -> str:
        return f"one of the newest {self.keep_last} (keep_last)"


@dataclass(frozen=True)
class TooYoung(Keeps):
    landed: datetime | None
    dated: datetime
    minimum_age: str

    @classmethod
    def find(cls, at: Keeping, nominal: datetime, landed: datetime | None) -> Reason | None:
        if at.settled is None or (landed or nominal) <= at.settled:
            return None
        return cls(landed, nominal, str(at.minimum_age))

    def __str__(self) -> str:
        came = f"landed at {format_instant(self.landed)}" if self.landed else f"dated {format_instant(self.dated)}"
        return f"{came}, less than {self.minimum_age} ago (minimum_age)"


class Needed(Keeps):
    @classmethod
    def find(cls, at: Keeping, nominal: datetime, landed: datetime | None) -> Reason | None:
        return next((reason for need in at.needs if (reason := need(nominal))), None)


KEEPS: tuple[type[Keeps], ...] = (ClockSetBack, OneOfTheNewest, TooYoung, Needed)


@dataclass(frozen=True)
class NeededByProcess(Reason):
    process: str
    instance: datetime
    why: str

    def __str__(self) -> str:
        return f"process {self.process} {format_instant(self.instance)} needs it: it {self.why}"


@dataclass(frozen=True)
class Protected(Reason):
    critical: str
    itself: bool

    def __str__(self) -> str:
        return f"{self.critical} is critical" + ("" if self.itself else ", and was made from it")


@dataclass(frozen=True)
class NotReplicated(Reason):
    target: str

    def __str__(self) -> str:
        return f"{self.target} has not replicated it yet"


def needed_by_target(target: str, timeline: Timeline, arrived: Collection[datetime]) -> Need:
    """A target needs what it has never had; ``arrived``: available there or evicted since, a set for speed."""
    reason = NotReplicated(target)
    return lambda instance: reason if timeline.contains(instance) and instance not in arrived else None


@dataclass
class ProtectedVersions:
    """Instances stay where their present version is protected, or a kept one, which would be deleted with them."""

    instances: dict[datetime, Protected] = field(default_factory=dict)
    versions: dict[tuple[datetime, str], Protected] = field(default_factory=dict)
