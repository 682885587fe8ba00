"""What a look at Dagster's instance shows: its daemon, sensors and runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from falcon_assets.history.dagster_internals.daemon import DaemonHealth, LastTick


MOST_RUNS = 50
"""So many runs at work are looked at: those that began first."""


@dataclass(frozen=True)
class SensorFacts:
    """A sensor that Dagster knows.

    Attributes:
        name: Its name.
        is_stopped: Whether somebody stopped it.
        last: Its last tick; None: there was none.
    """

    name: str
    is_stopped: bool
    last: LastTick | None


@dataclass(frozen=True)
class RunFacts:
    """A run that is not over; times are real ones.

    Attributes:
        run_id: Its id.
        job: The name of its job.
        status: ``QUEUED``, ``STARTED`` ...
        created: When it was made.
        last_event: When something happened to it last.
        is_lost: Whether nobody has its lock.
        stands_still: For how long its worker, which has the lock, has not given a sign of life; None: it does.
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
    """How Dagster is.

    Attributes:
        daemons: The parts of its daemon that have given signs of life.
        sensors: The sensors that ticked, or that somebody started or stopped.
        queued: How many runs are queued.
        oldest_queued: The one that has waited longest; None: none is queued.
        at_work: How many runs take a place.
        places: How many runs may be at work; None: any number.
        runs: Those that are starting, at work or stopping, the first :data:`MOST_RUNS`.
    """

    daemons: Sequence[DaemonHealth]
    sensors: Sequence[SensorFacts]
    queued: int
    oldest_queued: RunFacts | None
    at_work: int
    places: int | None
    runs: Sequence[RunFacts]
