"""Dagster's heartbeats say which of its daemons are alive."""

from __future__ import annotations

import time
from datetime import datetime, timezone

import dagster as dg
from dagster._daemon.types import DaemonHeartbeat

from falcon_assets.orchestration.dagster_internals.daemons import required_daemons


def test_a_daemon_is_alive_for_as_long_as_its_heartbeats_are_recent(instance: dg.DagsterInstance) -> None:
    instance.wipe_daemon_heartbeats()
    before = {one.name: (one.is_alive, one.seen) for one in required_daemons(instance)}
    assert {"SENSOR", "SCHEDULER"} <= set(before)
    assert set(before.values()) == {(False, None)}
    now, old = time.time(), 1_000_000.0
    instance.add_daemon_heartbeat(DaemonHeartbeat(now, "SENSOR", "a", []))
    instance.add_daemon_heartbeat(DaemonHeartbeat(old, "SCHEDULER", "a", []))
    found = {one.name: one for one in required_daemons(instance)}
    assert found["SENSOR"].is_alive
    assert (found["SCHEDULER"].is_alive, found["SCHEDULER"].seen) == (False, datetime.fromtimestamp(old, timezone.utc))
    instance.wipe_daemon_heartbeats()
