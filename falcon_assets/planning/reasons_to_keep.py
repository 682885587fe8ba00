"""Why an instance that its date lets go stays: a class for each reason, in the order in which they count.

A new rule is a new class in the list.
"""

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
"""Says why somebody needs the instance of a nominal time, None where nobody does (``{...}.get``, for example)."""


@dataclass(frozen=True)
class Keeping:
    """What the rules know at a moment about the instances of a feed on a cluster.

    Attributes:
        now: The time.
        newest: The instances that ``keep_last`` covers.
        keep_last: As it is declared.
        settled: What landed after it is covered by ``minimum_age``; None: nothing is.
        minimum_age: As it is declared.
        needs: Who may still need an instance: processes, late reruns, targets of replication.
    """

    now: datetime
    newest: frozenset[datetime]
    keep_last: int | None
    settled: datetime | None
    minimum_age: Frequency | None
    needs: Sequence[Need]


class Keeps(Reason):
    """Why an instance stays."""

    @classmethod
    @abstractmethod
    def find(cls, at: Keeping, nominal: datetime, landed: datetime | None) -> Reason | None:
        """The reason, where the instance stays for it; ``landed`` None: nobody knows when its data came."""


@dataclass(frozen=True)
class ClockSetBack(Keeps):
    """It is dated after now, and was not when it came."""

    landed: datetime

    @classmethod
    def find(cls, at: Keeping, nominal: datetime, landed: datetime | None) -> Reason | None:
        """See :meth:`Keeps.find`."""
        return cls(landed) if nominal > at.now and landed is not None and landed >= nominal else None

    def __str__(self) -> str:
        """A sentence."""
        return f"landed at {format_instant(self.landed)}, before the clock was set back"


@dataclass(frozen=True)
class OneOfTheNewest(Keeps):
    """``keep_last`` covers it."""

    keep_last: int | None

    @classmethod
    def find(cls, at: Keeping, nominal: datetime, landed: datetime | None) -> Reason | None:
        """See :meth:`Keeps.find`."""
        return cls(at.keep_last) if nominal in at.newest else None

    def __str__(self) -> str:
        """A sentence."""
        return f"one of the newest {self.keep_last} (keep_last)"


@dataclass(frozen=True)
class TooYoung(Keeps):
    """``minimum_age`` covers it."""

    landed: datetime | None
    dated: datetime
    minimum_age: str

    @classmethod
    def find(cls, at: Keeping, nominal: datetime, landed: datetime | None) -> Reason | None:
        """See :meth:`Keeps.find`."""
        if at.settled is None or (landed or nominal) <= at.settled:
            return None
        return cls(landed, nominal, str(at.minimum_age))

    def __str__(self) -> str:
        """A sentence."""
        came = f"landed at {format_instant(self.landed)}" if self.landed else f"dated {format_instant(self.dated)}"
        return f"{came}, less than {self.minimum_age} ago (minimum_age)"


class Needed(Keeps):
    """Somebody needs it: the reason is theirs."""

    @classmethod
    def find(cls, at: Keeping, nominal: datetime, landed: datetime | None) -> Reason | None:
        """See :meth:`Keeps.find`."""
        return next((reason for need in at.needs if (reason := need(nominal))), None)


KEEPS: tuple[type[Keeps], ...] = (ClockSetBack, OneOfTheNewest, TooYoung, Needed)
"""The first that applies counts."""


@dataclass(frozen=True)
class NeededByProcess(Reason):
    """An instance of a process reads it.

    Attributes:
        process: The process.
        instance: Its instance.
        why: What that is pending for, as a predicate.
    """

    process: str
    instance: datetime
    why: str

    def __str__(self) -> str:
        """A sentence."""
        return f"process {self.process} {format_instant(self.instance)} needs it: it {self.why}"


@dataclass(frozen=True)
class Protected(Reason):
    """A version that is critical was made from it, or it is critical itself.

    Attributes:
        critical: That version.
        itself: Whether it is that version.
    """

    critical: str
    itself: bool

    def __str__(self) -> str:
        """A sentence."""
        return f"{self.critical} is critical" + ("" if self.itself else ", and was made from it")


@dataclass(frozen=True)
class NotReplicated(Reason):
    """A target has not replicated it."""

    target: str

    def __str__(self) -> str:
        """A sentence."""
        return f"{self.target} has not replicated it yet"


def needed_by_target(target: str, timeline: Timeline, arrived: Collection[datetime]) -> Need:
    """A target of replication needs what exists there too and has never been there.

    Args:
        target: Name of the target cluster.
        timeline: The feed's instances there.
        arrived: Those that are available there, or were until they were evicted; a set, for speed.
    """
    reason = NotReplicated(target)
    return lambda instance: reason if timeline.contains(instance) and instance not in arrived else None


@dataclass
class ProtectedVersions:
    """The protected versions of a feed on a cluster, and why each is.

    Attributes:
        instances: Instance -> why it stays: its present version is protected, or one that is kept, which goes with it.
        versions: Instance and version -> why it is.
    """

    instances: dict[datetime, Protected] = field(default_factory=dict)
    versions: dict[tuple[datetime, str], Protected] = field(default_factory=dict)
