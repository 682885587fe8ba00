"""What is remembered about an instance: its state, the runs that a process instance had, a request to rerun it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any


class InstanceState(str, Enum):
    """The states of a process instance (source: Apache Falcon's instance states)."""

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
    """The states of a feed instance on a cluster; the ledger has rows of the first two, and of what was taken back."""

    AVAILABLE = "AVAILABLE"
    EVICTED = "EVICTED"
    MISSING = "MISSING"
    PENDING = "PENDING"


STORE_AWAY = "store_away"
"""The kind of reason of an instance that waits because what it reads or writes lies on a store that was away."""
BEING_WRITTEN = "being_written"
"""The kind of reason of an instance that waits because another run was writing what it writes."""


@dataclass(frozen=True)
class InstanceRecord:
    """One process instance on one cluster, as it was last seen; all times on the falcon clock, in UTC.

    Attributes:
        nominal: The nominal time, which names the instance.
        state: Its state.
        reason: Why it is in that state, in plain words.
        attempt: How many runs were given it.
        failures: FAILED or TIMED_OUT in a row, since the last success or the last request to rerun it.
        queued_run: The run that was given it and has not started it yet.
        run_id: The run that started it last.
        started: When it was started last.
        ended: When it ended last, or timed out.
        reason_data: The reason for programs, where a rule says it: ``kind`` and what it is about.
        definition: The version of the definition that it ran with last; None: not recorded.
        deaths: How often in a row the process of its run was killed.
    """

    nominal: datetime
    state: InstanceState
    reason: str = ""
    attempt: int = 0
    failures: int = 0
    queued_run: str | None = None
    run_id: str | None = None
    started: datetime | None = None
    ended: datetime | None = None
    reason_data: Mapping[str, Any] | None = None
    definition: int | None = None
    deaths: int = 0

    @property
    def in_flight(self) -> bool:
        """Whether a run was given it, started or not."""
        return self.queued_run is not None or self.state is InstanceState.RUNNING

    @property
    def waits_for_store(self) -> bool:
        """Whether its last attempt ended because a store was away, or taken: that is no failure of its own."""
        kind = (self.reason_data or {}).get("kind")
        return self.state is InstanceState.WAITING and kind in (STORE_AWAY, BEING_WRITTEN)


@dataclass(frozen=True)
class LateChange:
    """An input instance that is not what was read any more.

    Attributes:
        input: Name of the input.
        feed: Its feed.
        instance: The feed instance.
        before: The version that was read; None: it was not there.
        after: The version that is there now.
    """

    input: str
    feed: str
    instance: datetime
    before: str | None
    after: str


LATE = "late"
"""The kind of request that late data makes."""
RERUN = "rerun"
"""The kind of request that a person makes."""


@dataclass(frozen=True)
class RerunRequest:
    """A request to run an instance once more; alive until the instance has run for it, retries included.

    Attributes:
        kind: Who asked: :data:`LATE` or :data:`RERUN`.
        attempt: The attempt of the instance when it was asked for: a later one serves the request.
        failures: Its failures at that time; those of the rerun are counted from there.
        requested_at: When, on the falcon clock, in UTC.
        changes: What changed, where late data is the cause.
        late_workflow: Whether a person asked for the workflow that late data has.
        use_latest: Whether it runs with the present definition, not with the version that the instance had.
        by: The person.
        reason: Why, in the person's words, and with which properties, secret ones as stars.
        properties: Those with which it runs, over what is declared; by name.
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
        """Whether it runs as late data is run again."""
        return self.kind == LATE or self.late_workflow


@dataclass(frozen=True)
class Launch:
    """A run to start.

    Attributes:
        nominals: Neighbours in the timeline, oldest first.
        slots: How many of them may run at once.
        late: Whether it runs them again because of late data.
        use_latest: Whether it runs them with the present definition, not with the version that they had.
    """

    nominals: tuple[datetime, ...]
    slots: int
    late: bool = False
    use_latest: bool = False


@dataclass(frozen=True)
class KnownFeedInstance:
    """A feed instance that is available, or was until it was evicted."""

    state: FeedState
    evicted_at: datetime | None = None
