"""Rows of the ledger, written as tests want them, for instances of every hour of 2013."""

from __future__ import annotations

from typing import Any

from falcon_assets.history.database import upsert
from falcon_assets.history.tables import FEED_INSTANCES, PROCESS_INSTANCES
from falcon_assets.operations.installation import Installation
from tests.hours import hour


def process_row(process: str, number: int, state: str, cluster: str = "primary", **more: Any) -> dict[str, Any]:
    key = {"process": process, "cluster": cluster, "nominal": hour(number)}
    told = {"state": state, "reason": "", "attempt": 1, "failures": 0, "deaths": 0, "event_id": 1}
    return {**{column.name: None for column in PROCESS_INSTANCES.c}, **told, **key, **more}


def feed_row(feed: str, number: int, cluster: str = "primary", **more: Any) -> dict[str, Any]:
    key = {"cluster": cluster, "feed": feed, "instance": hour(number)}
    told = {"state": "AVAILABLE", "version": "v", "changes": 0, "event_id": 1, "version_event": 1, "late": False}
    times = {"landed_at": hour(number), "seen_at": hour(number)}
    return {**{column.name: None for column in FEED_INSTANCES.c}, **told, **times, **key, **more}


def write(installation: Installation, *rows: dict[str, Any]) -> None:
    """Writes rows of feeds and of processes."""
    with installation.ledger.engine.begin() as connection:
        upsert(connection, PROCESS_INSTANCES, [row for row in rows if "process" in row])
        upsert(connection, FEED_INSTANCES, [row for row in rows if "feed" in row])
