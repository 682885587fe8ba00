"""Facts about Dagster's instance: its daemon, sensors and runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from falcon_assets.history.dagster_internals.daemon import DaemonHealth, LastTick


MOST_RUNS = 50
"""Number of runs at work that are examined: those that began first."""


@dataclass(frozen=True)
class SensorFacts:
    name: str
    is_stopped: bool
    last: LastTick | None


@dataclass(frozen=True)
class RunFacts:
    """A run that is not over; times are real ones.

    ``is_lost``: the lock of its worker is free. ``stands_still``: how long its worker, which has the lock, has given no
    sign of life; None: it does.
    """

    run_id: str
    job: str
    status: str
    created: datetime
    last_event: datetime
    is_lost: bool = False
    stands_still: timedelta | None = None


@dataclass(frozen=True)
class DagsterFacts:
    """The state of Dagster.

    Attributes:
        oldest_queued: None: none is queued.
        at_work: Number of runs that occupy a slot.
        places: Number of slots; None: unlimited.
        runs: Those that are starting, at work or stopping, the first :data:`MOST_RUNS`.
    """

    daemons: Sequence[DaemonHealth]
    sensors: Sequence[SensorFacts]
    queued: int
    oldest_queued: RunFacts | None
    at_work: int
    places: int | None
    runs: Sequence[RunFacts]
