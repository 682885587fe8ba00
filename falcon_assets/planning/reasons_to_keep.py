"""Reasons why an instance stays although its date lets it go: one class each, in the order in which they count."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from falcon_assets.model.frequency import Frequency
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.reasons import Reason
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


class ClockSetBack(Keeps, says="landed at {landed}, before the clock was set back"):
    """Dated after now, but was not when it landed."""

    landed: datetime

    @classmethod
    def find(cls, at: Keeping, nominal: datetime, landed: datetime | None) -> Reason | None:
        return cls(landed) if nominal > at.now and landed is not None and landed >= nominal else None


class OneOfTheNewest(Keeps, says="one of the newest {keep_last} (keep_last)"):
    keep_last: int | None

    @classmethod
    def find(cls, at: Keeping, nominal: datetime, landed: datetime | None) -> Reason | None:
        return cls(at.keep_last) if nominal in at.newest else None


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


class NeededByProcess(Reason, says="process {process} {instance} needs it: it {why}"):
    process: str
    instance: datetime
    why: str


class Protected(Reason):
    critical: str
    itself: bool

    def __str__(self) -> str:
        return f"{self.critical} is critical" + ("" if self.itself else ", and was made from it")


class HoldsFormer(Reason, says="{path}, in its folder, is instance {former} of an earlier definition"):
    """The folder of an instance contains one of an earlier definition."""

    former: datetime
    path: str


class NotReplicated(Reason, says="{target} has not replicated it yet"):
    target: str


def needed_by_target(target: str, timeline: Timeline, arrived: Collection[datetime]) -> Need:
    """A target needs what it has never had; ``arrived``: available there or evicted since, a set for speed."""
    reason = NotReplicated(target)
    return lambda instance: reason if timeline.contains(instance) and instance not in arrived else None


@dataclass
class ProtectedVersions:
    """Instances stay where their present version is protected, or a kept one, which would be deleted with them."""

    instances: dict[datetime, Protected] = field(default_factory=dict)
    versions: dict[tuple[datetime, str], Protected] = field(default_factory=dict)
