"""Rows of the ledger that the tests of lists write."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from falcon_assets.history.database import upsert
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.installation import Installation

NOW = parse_instant("2013-04-02T05:30Z")
"""What time it is for the installation of the fixture ``installed``."""


def fill(installation: Installation, table: Any, *rows: dict[str, Any]) -> None:
    with installation.ledger.engine.begin() as connection:
        upsert(connection, table, [{**{column.name: None for column in table.c}, **row} for row in rows])


def feed_row(feed: str, cluster: str, instance: datetime, **more: Any) -> dict[str, Any]:
    told = {"state": "AVAILABLE", "version": "v", "changes": 0, "event_id": 1, "version_event": 1, "late": False}
    times = {"landed_at": instance, "seen_at": instance}
    return {"feed": feed, "cluster": cluster, "instance": instance, **told, **times, **more}


def process_row(process: str, cluster: str, nominal: datetime, state: str) -> dict[str, Any]:
    told = {"state": state, "reason": "", "attempt": 1, "failures": 0, "deaths": 0, "event_id": 1}
    return {"process": process, "cluster": cluster, "nominal": nominal, **told}
