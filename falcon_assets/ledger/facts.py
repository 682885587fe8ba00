"""What Dagster's history says, in the ledger's words; ``event_id`` is the place in that history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TypeAlias

from falcon_assets.planning.instances.instance_record import InstanceState


@dataclass(frozen=True)
class FeedInstanceAvailable:
    """A feed instance landed or was published; ``at`` is when that was seen, on the falcon clock."""

    event_id: int
    cluster: str
    feed: str
    instance: datetime
    version: str
    at: datetime
    bytes: int | None = None
    records: int | None = None
    files: int | None = None
    signature: str | None = None
    run_id: str | None = None
    late: bool = False
    """Whether a late rerun published it."""
    looked_before: datetime | None = None
    """When somebody had looked last, and it was not there yet; None: it was seen as it came."""
    pushed: tuple[str, int] | None = None
    """The partition whose push it answers, and the event of that push."""


@dataclass(frozen=True)
class PartitionPushed:
    """Somebody else says that a partition is there: nothing is known about it until a collector has looked.

    ``partition`` is what they said, the key of an instance or not; empty: nothing.
    """

    event_id: int
    cluster: str
    feed: str
    partition: str


@dataclass(frozen=True)
class PushRefused:
    """A collector has looked at what was pushed, up to the event ``pushed``, and there is no instance to record."""

    event_id: int
    cluster: str
    feed: str
    partition: str
    pushed: int


@dataclass(frozen=True)
class FeedInstanceEvicted:
    """Retention took a feed instance away; ``at`` is when, on the falcon clock."""

    event_id: int
    cluster: str
    feed: str
    instance: datetime
    at: datetime
    bytes: int | None = None
    """How much it was, statistics and metadata included."""
    run_id: str | None = None


@dataclass(frozen=True)
class Consumption:
    """An input instance that was read; version None: it was not there."""

    input: str
    feed: str
    instance: datetime
    version: str | None
    cluster: str | None = None
    """Where it was read; None: where the process runs."""


@dataclass(frozen=True)
class InstanceChanged:
    """A process instance came to a state. ``run_id`` None: the coordinator decided it."""

    event_id: int
    process: str
    cluster: str
    nominal: datetime
    state: InstanceState
    at: datetime
    run_id: str | None = None
    reason: str = ""
    consumed: tuple[Consumption, ...] = ()


@dataclass(frozen=True)
class RunQueued:
    """A run that a coordinator made for some instances of a process is there.

    ``attempts`` says for each of the instances which attempt the coordinator meant the run to be; none: the next one.
    Of several runs for one attempt the first one has the instance, and the others are not for it.
    """

    event_id: int
    run_id: str
    process: str
    cluster: str
    nominals: tuple[datetime, ...]
    attempts: tuple[int, ...] = ()


class RunEnding(str, Enum):
    """How a run ended, for the instances that it left unfinished."""

    FAILED = "failed"
    KILLED = "killed"
    INTERRUPTED = "interrupted"
    """Who ran it was asked to end, not the run: nothing is wrong with its instances."""


@dataclass(frozen=True)
class RunEnded:
    """A run is over; instances that it has not finished will not be finished by it."""

    event_id: int
    run_id: str
    ending: RunEnding
    at: datetime
    reason: str = ""


@dataclass(frozen=True)
class CameTooLate:
    """A version of a feed instance came after its cut-off, and a process instance that had read it does not rerun."""

    event_id: int
    process: str
    cluster: str
    nominal: datetime
    feed: str
    instance: datetime
    version: str


Fact: TypeAlias = (
    FeedInstanceAvailable
    | FeedInstanceEvicted
    | PartitionPushed
    | PushRefused
    | InstanceChanged
    | RunQueued
    | RunEnded
    | CameTooLate
)
