"""What Dagster has written down about its daemon and its sensors; it has no public way to ask for that.

Its tables are read as they are: loading Dagster takes seconds, and who asks whether it lives shall not wait for that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, select

from falcon_assets.history.dagster_internals.tables import DAEMON, INSTIGATORS, TICKS

SENSORS = "SENSOR"
"""The part of the daemon that ticks sensors."""
RUNS = "QUEUED_RUN_COORDINATOR"
"""The part of it that starts queued runs."""


@dataclass(frozen=True)
class DaemonHealth:
    """A part of Dagster's daemon.

    Attributes:
        name: What Dagster calls it: ``SENSOR``, ``SCHEDULER``, ...
        seen: When it gave its last sign of life, in real time.
        error: What went wrong there lately; None: nothing.
    """

    name: str
    seen: datetime
    error: str | None = None


def daemon_parts(connection: Connection) -> list[DaemonHealth]:
    """The parts of the daemon that gave the latest sign of life; those that only an earlier one had are not needed."""
    rows = connection.execute(select(DAEMON).order_by(DAEMON.c.timestamp.desc(), DAEMON.c.daemon_type)).all()
    parts = [one for one in rows if one.daemon_id == rows[0].daemon_id]
    return sorted(map(_health, parts), key=lambda one: one.name)


def _health(row: Any) -> DaemonHealth:
    errors = json.loads(row.body or "{}").get("errors") or ()
    error = next((str(one.get("message", "")) for one in errors), None)
    return DaemonHealth(row.daemon_type, row.timestamp.replace(tzinfo=UTC), error)


@dataclass(frozen=True)
class SensorState:
    """A sensor that has ticked, or that somebody started or stopped.

    Attributes:
        name: Its name.
        is_stopped: Whether somebody stopped it.
        selector: Names it, for Dagster.
    """

    name: str
    is_stopped: bool
    selector: str


def sensor_states(connection: Connection) -> list[SensorState]:
    """The sensors of all code locations; those that never ticked are not known."""
    own = INSTIGATORS.c
    found = connection.execute(
        select(own.selector_id, own.status, own.instigator_body).where(own.instigator_type == SENSORS)
    )
    return [
        SensorState(json.loads(body)["origin"]["job_name"], status == "STOPPED", selector)
        for selector, status, body in found
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


def last_tick(connection: Connection, sensor: SensorState) -> LastTick | None:
    """The last tick of a sensor; None: there was none."""
    tick = TICKS.c
    ours = select(tick.status, tick.timestamp, tick.tick_body).where(tick.selector_id == sensor.selector)
    found = connection.execute(ours.order_by(tick.timestamp.desc()).limit(1)).one_or_none()
    if found is None:
        return None
    failure = _root_of(json.loads(found.tick_body).get("error")) if found.status == "FAILURE" else None
    return LastTick(found.timestamp.replace(tzinfo=UTC), failure)


def _root_of(error: Mapping[str, Any] | None) -> str:
    """What the first of a chain of errors says."""
    while error and error.get("cause"):
        error = error["cause"]
    return str(error["message"]) if error else ""


def last_failure(connection: Connection, sensor: SensorState) -> str | None:
    """What went wrong in the last tick of a sensor; None: nothing, or there was none."""
    tick = last_tick(connection, sensor)
    return tick.failure if tick else None
