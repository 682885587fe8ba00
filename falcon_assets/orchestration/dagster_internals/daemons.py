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
        seen: When it gave its last sign of life, in real time; None: never.
        error: What went wrong there lately; None: nothing.
    """

    name: str
    seen: datetime | None
    error: str | None = None


def required_daemons(instance: dg.DagsterInstance) -> list[DaemonHealth]:
    """Those that this instance needs."""
    found = {name: one.last_heartbeat for name, one in instance.get_daemon_statuses().items()}
    return [
        DaemonHealth(
            name,
            datetime.fromtimestamp(one.timestamp, timezone.utc) if one else None,
            one.errors[0].message if one and one.errors else None,
        )
        for name, one in found.items()
    ]
