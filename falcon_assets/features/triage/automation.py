"""State of Dagster's daemon and sensors, which launch and record."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from textwrap import shorten

from sqlalchemy import Connection

from falcon_assets.features.triage.known import Obstacle
from falcon_assets.features.triage.reasons import DaemonSilent, SensorStopped, TickFailed
from falcon_assets.history.dagster_internals.daemon import (
    SENSORS,
    SensorState,
    daemon_parts,
    last_failure,
    sensor_states,
)
from falcon_assets.planning.dagster_names import op_name

SILENT_SECONDS = 120.0
"""Each part of the daemon sends a heartbeat every half minute."""
_LONGEST = 300


@dataclass(frozen=True)
class Automation:
    """Dagster's own records of its daemon and sensors; read once, on demand."""

    connection: Connection

    def daemon(self, part: str) -> tuple[Obstacle, ...]:
        last = self._signs.get(part)
        silent = time.time() - last if last is not None else None
        if silent is not None and silent < SILENT_SECONDS:
            return ()
        reason = DaemonSilent(None if silent is None else timedelta(seconds=silent))
        return (Obstacle("dagster-daemon", "daemon", "STOPPED", reason, "dagster-daemon run"),)

    def sensor(self, whose: str, work: str) -> tuple[Obstacle, ...]:
        name = op_name(whose, work)
        ours = [one for one in self._sensors if one.name == name]
        if any(one.is_stopped for one in ours):
            return (Obstacle(name, "sensor", "STOPPED", SensorStopped(), f"dagster sensor start {name}"),)
        if silent := self.daemon(SENSORS):
            return silent
        errors = [error for one in ours if (error := last_failure(self.connection, one)) is not None]
        if not errors:
            return ()
        said = shorten(errors[0], _LONGEST, placeholder=" ...")
        fix = "falcon validate" if "definitions" in said else None
        return (Obstacle(name, "sensor", "FAILED", TickFailed(said), fix),)

    @cached_property
    def _signs(self) -> Mapping[str, float]:
        return {one.name: one.seen.timestamp() for one in daemon_parts(self.connection)}

    @cached_property
    def _sensors(self) -> Sequence[SensorState]:
        return sensor_states(self.connection)
