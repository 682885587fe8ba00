"""What Dagster knows of its daemons."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

import dagster as dg


@dataclass(frozen=True)
class DaemonHealth:
    """A part of Dagster's daemon.

    Attributes:
        name: What Dagster calls it: ``SENSOR``, ``SCHEDULER``, ...
        is_alive: Whether its last heartbeat is recent, and came without an error.
        seen: When that was, in real time; None: never.
    """

    name: str
    is_alive: bool
    seen: datetime | None


def required_daemons(instance: dg.DagsterInstance) -> list[DaemonHealth]:
    """Those that this instance needs."""
    found = instance.get_daemon_statuses()
    return [
        DaemonHealth(
            name,
            bool(one.healthy),
            datetime.fromtimestamp(one.last_heartbeat.timestamp, timezone.utc) if one.last_heartbeat else None,
        )
        for name, one in found.items()
    ]
