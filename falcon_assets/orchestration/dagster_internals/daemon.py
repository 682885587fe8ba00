"""What Dagster has written down about its daemon and its sensors; it has no public way to ask for that."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

import dagster as dg
from dagster._core.definitions.run_request import InstigatorType  # all_instigator_state wants it
from dagster._core.scheduler.instigation import InstigatorStatus, TickStatus  # what states and ticks say

SENSORS = "SENSOR"
"""The part of the daemon that ticks sensors."""
RUNS = "QUEUED_RUN_COORDINATOR"
"""The part of it that starts queued runs."""


@dataclass(frozen=True)
class SensorState:
    """A sensor that has ticked, or that somebody started or stopped.

    Attributes:
        name: Its name.
        is_stopped: Whether somebody stopped it.
        origin: Names it and its code location, for Dagster.
        selector: Names it, for Dagster.
    """

    name: str
    is_stopped: bool
    origin: str
    selector: str


def signs_of_life(instance: dg.DagsterInstance) -> dict[str, float]:
    """Part of the daemon -> when it last said that it works, in seconds since 1970."""
    return {part: one.timestamp for part, one in instance.get_daemon_heartbeats().items()}


def sensor_states(instance: dg.DagsterInstance) -> list[SensorState]:
    """The sensors of all code locations; those that never ticked are not known."""
    found = instance.all_instigator_state(instigator_type=InstigatorType.SENSOR)
    return [
        SensorState(
            one.instigator_name, one.status is InstigatorStatus.STOPPED, one.instigator_origin_id, one.selector_id
        )
        for one in found
    ]


@dataclass(frozen=True)
class LastTick:
    """The last tick of a sensor.

    Attributes:
        began: When, in real time.
        failure: What went wrong; None: nothing.
    """

    began: datetime
    failure: str | None


def last_tick(instance: dg.DagsterInstance, sensor: SensorState) -> LastTick | None:
    """The last tick of a sensor; None: there was none."""
    ticks = instance.get_ticks(sensor.origin, sensor.selector, limit=1)
    if not ticks:
        return None
    error = ticks[0].error
    while error is not None and error.cause is not None:
        error = error.cause
    failure = (error.message if error else "") if ticks[0].status is TickStatus.FAILURE else None
    return LastTick(datetime.fromtimestamp(ticks[0].timestamp, timezone.utc), failure)


def last_failure(instance: dg.DagsterInstance, sensor: SensorState) -> str | None:
    """What went wrong in the last tick of a sensor; None: nothing, or there was none."""
    tick = last_tick(instance, sensor)
    return tick.failure if tick else None
