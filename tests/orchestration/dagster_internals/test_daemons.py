"""Dagster's heartbeats say when its daemons were seen last."""

from __future__ import annotations

from datetime import datetime, timezone

import dagster as dg
from dagster._daemon.types import DaemonHeartbeat
from dagster._utils.error import SerializableErrorInfo

from falcon_assets.orchestration.dagster_internals.daemons import required_daemons


def test_signs_of_life_of_all_that_is_needed(instance: dg.DagsterInstance) -> None:
    instance.wipe_daemon_heartbeats()
    before = {one.name: one for one in required_daemons(instance)}
    assert {"SENSOR", "SCHEDULER", "QUEUED_RUN_COORDINATOR"} <= set(before)
    assert {(one.seen, one.error) for one in before.values()} == {(None, None)}
    seen = 1_000_000.0
    error = SerializableErrorInfo("it broke", [], None)
    instance.add_daemon_heartbeat(DaemonHeartbeat(seen, "SENSOR", "a", []))
    instance.add_daemon_heartbeat(DaemonHeartbeat(seen, "SCHEDULER", "a", [error]))
    found = {one.name: (one.seen, one.error) for one in required_daemons(instance)}
    then = datetime.fromtimestamp(seen, timezone.utc)
    assert (found["SENSOR"], found["SCHEDULER"]) == ((then, None), (then, "it broke"))
    instance.wipe_daemon_heartbeats()
