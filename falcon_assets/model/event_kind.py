"""Kinds of events of instances: the transitions that receivers can be told of."""

from __future__ import annotations

from enum import Enum


class EventKind(str, Enum):
    """Transitions of instances; a feature that has more adds them here, and returns them from its ``fold``."""

    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    SLA = "SLA"
    """A level of an SLA was missed, or met after all."""
    LATE = "LATE"
    """Late data arrived, and the instance runs again."""
    EVICTED = "EVICTED"
    SUCCEEDED = "SUCCEEDED"
    KILLED = "KILLED"
    RESTORED = "RESTORED"
    STARTED = "STARTED"
    SKIPPED = "SKIPPED"
    """``order: LAST_ONLY`` passed it over."""
    SUSPENDED = "SUSPENDED"
    RESUMED = "RESUMED"
    INTERRUPTED = "INTERRUPTED"
    """Its run ended without its fault: it waits, and runs again."""
    TOO_LATE = "TOO_LATE"
    """Late data arrived after its cut-off: the instance does not run again."""
    LANDED = "LANDED"
    """A version is available: the first, or another one."""
    REPLICATED = "REPLICATED"
    """A replication copied a version."""
    WITHDRAWN = "WITHDRAWN"
    """An available instance vanished, and retention did not evict it."""
    SHARE_REACHED = "SHARE_REACHED"
    """A version came with at least the share of the records sent that ``completeness`` asks for."""
    VALID = "VALID"
    """The checks of a version say so, or a person."""
    INVALID = "INVALID"
    BACKFILLED = "BACKFILLED"
    """Another version came in place of an invalid one."""
    HELD = "HELD"
    """What a process computed for it failed a check, and was not published."""
    EXECUTOR_OFFLINE = "EXECUTOR_OFFLINE"
    """An executor of a cluster does not answer any more; this and the next are about no instance."""
    EXECUTOR_ONLINE = "EXECUTOR_ONLINE"
    """It answers again."""


OF_FEEDS = frozenset(
    (
        *(EventKind.LANDED, EventKind.REPLICATED, EventKind.RESTORED, EventKind.EVICTED, EventKind.WITHDRAWN),
        *(EventKind.SHARE_REACHED, EventKind.VALID, EventKind.INVALID, EventKind.BACKFILLED, EventKind.HELD),
        EventKind.SLA,
    )
)
"""Transitions of instances of feeds; SLA is of processes, too."""
OF_EXECUTORS = frozenset((EventKind.EXECUTOR_OFFLINE, EventKind.EXECUTOR_ONLINE))
"""Changes of the health of executors."""
