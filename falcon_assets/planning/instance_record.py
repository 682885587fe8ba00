"""Records of instances: states, the runs that a process instance had, requests to rerun it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Annotated, Any

from falcon_assets.planning.reasons import BeingWritten, HeldBack, StoreAway


class InstanceState(str, Enum):
    """The states of a process instance (source: Apache Falcon)."""

    WAITING = "WAITING"
    READY = "READY"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    KILLED = "KILLED"
    SUSPENDED = "SUSPENDED"
    TIMED_OUT = "TIMED_OUT"
    SKIPPED = "SKIPPED"


class FeedState(str, Enum):
    """The states of a feed instance on a cluster; the ledger has rows of the first two, and of withdrawn instances."""

    AVAILABLE = "AVAILABLE"
    EVICTED = "EVICTED"
    MISSING = "MISSING"
    PENDING = "PENDING"


@dataclass(frozen=True)
class InstanceRecord:
    """One process instance on one cluster; all times on the falcon clock, in UTC.

    Its fields are columns of ``falcon.process_instances``; plain texts are comments in the database.
    Failures are counted since the last success or the last request to rerun it.
    """

    nominal: datetime
    state: InstanceState
    reason: str = ""
    attempt: Annotated[int, "how many runs it was given to"] = 0
    failures: Annotated[int, "FAILED or TIMED_OUT in a row"] = 0
    queued_run: Annotated[str | None, "the run that carries it and has not started it yet"] = None
    run_id: Annotated[str | None, "the run that started it last"] = None
    started: datetime | None = None
    ended: datetime | None = None
    reason_data: Annotated[Mapping[str, Any] | None, "the reason for programs, where a rule says it"] = None
    definition: Annotated[int | None, "the version that it ran with last; null: not recorded"] = None
    deaths: Annotated[int, "how often in a row its run was killed"] = 0
    executor: Annotated[str | None, "the executor that it ran on last; null: not recorded"] = None

    @property
    def in_flight(self) -> bool:
        return self.queued_run is not None or self.state is InstanceState.RUNNING

    @property
    def run(self) -> str | None:
        """The present or the last run."""
        return self.queued_run or self.run_id

    @property
    def waits_for_store(self) -> bool:
        """Whether its last attempt ended because a store was away or in use, which is no failure of its own."""
        is_of_store = StoreAway.is_in(self.reason_data) or BeingWritten.is_in(self.reason_data)
        return self.state is InstanceState.WAITING and is_of_store

    @property
    def is_held_back(self) -> bool:
        """Whether it failed as its output is wrong: as wrong as another attempt would make it."""
        return self.state is InstanceState.FAILED and HeldBack.is_in(self.reason_data)


@dataclass(frozen=True, kw_only=True)
class KeyedInstance(InstanceRecord):
    """A process instance with its key; ``event_id`` is of the latest event about it."""

    process: str
    cluster: str
    event_id: int = 0


@dataclass(frozen=True)
class LateChange:
    """An input instance that changed after it was read; ``before`` None: it was not there."""

    input: str
    feed: str
    instance: datetime
    before: str | None
    after: str


LATE = "late"
RERUN = "rerun"


@dataclass(frozen=True)
class RerunRequest:
    """A request to run an instance once more; alive until the instance has run for it, retries included.

    ``attempt`` and ``failures`` are those of the instance at the time of the request: a later attempt serves it, and
    failures of the rerun are counted from there. ``requested_at`` is on the falcon clock, in UTC; ``reason`` names
    properties, with stars for secrets.
    """

    kind: str
    attempt: int
    failures: int
    requested_at: datetime
    changes: tuple[LateChange, ...] = ()
    late_workflow: bool = False
    use_latest: bool = False
    by: str = ""
    reason: str = ""
    properties: tuple[tuple[str, str], ...] = ()

    @property
    def is_late(self) -> bool:
        return self.kind == LATE or self.late_workflow


@dataclass(frozen=True)
class Launch:
    """A run to start, for neighbours in the timeline, oldest first; at most ``slots`` of them run at once.

    ``executor`` "": its cluster has no executors to choose from, or it needs none.
    """

    nominals: tuple[datetime, ...]
    slots: int
    late: bool = False
    use_latest: bool = False
    executor: str = ""


@dataclass(frozen=True)
class KnownFeedInstance:
    state: FeedState
    evicted_at: datetime | None = None
