"""Dagster's records about its daemon and its sensors, for which it has no public API.

Its tables are read directly: loading Dagster takes seconds, too long for a health check.
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
RUNS = "QUEUED_RUN_COORDINATOR"


@dataclass(frozen=True)
class DaemonHealth:
    name: str
    seen: datetime
    error: str | None = None


def daemon_parts(connection: Connection) -> list[DaemonHealth]:
    """Returns the parts of the daemon process with the latest heartbeat."""
    rows = connection.execute(select(DAEMON).order_by(DAEMON.c.timestamp.desc(), DAEMON.c.daemon_type)).all()
    parts = [one for one in rows if one.daemon_id == rows[0].daemon_id]
    return sorted(map(_health, parts), key=lambda one: one.name)


def _health(row: Any) -> DaemonHealth:
    errors = json.loads(row.body or "{}").get("errors") or ()
    error = next((str(one.get("message", "")) for one in errors), None)
    return DaemonHealth(row.daemon_type, row.timestamp.replace(tzinfo=UTC), error)


@dataclass(frozen=True)
class SensorState:
    """A sensor that has ticked, or that a user started or stopped; ``selector`` is Dagster's id of it."""

    name: str
    is_stopped: bool
    selector: str


def sensor_states(connection: Connection) -> list[SensorState]:
    """Sensors that never ticked are missing."""
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
    began: datetime
    failure: str | None


def last_tick(connection: Connection, sensor: SensorState) -> LastTick | None:
    tick = TICKS.c
    ours = select(tick.status, tick.timestamp, tick.tick_body).where(tick.selector_id == sensor.selector)
    found = connection.execute(ours.order_by(tick.timestamp.desc()).limit(1)).one_or_none()
    if found is None:
        return None
    failure = _root_of(json.loads(found.tick_body).get("error")) if found.status == "FAILURE" else None
    return LastTick(found.timestamp.replace(tzinfo=UTC), failure)


def _root_of(error: Mapping[str, Any] | None) -> str:
    while error and error.get("cause"):
        error = error["cause"]
    return str(error["message"]) if error else ""


def last_failure(connection: Connection, sensor: SensorState) -> str | None:
    """Returns None as well if there was no tick."""
    tick = last_tick(connection, sensor)
    return tick.failure if tick else None
