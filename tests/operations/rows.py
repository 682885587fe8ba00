"""Rows of the ledger, written as tests want them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Table

from falcon_assets.history.database import upsert
from falcon_assets.history.tables import FEED_INSTANCES, PROCESS_INSTANCES
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.installation import Installation
from tests.hours import hour

NOW = parse_instant("2013-04-02T05:30Z")
"""What time it is for the installation of the fixture ``installed``."""


def process_row(process: str, at: datetime | int, state: str, cluster: str = "primary", **more: Any) -> dict[str, Any]:
    """An instance of a process, which may be given by its hour in 2013."""
    key = {"process": process, "cluster": cluster, "nominal": _instant(at)}
    return {**key, "state": state, "reason": "", "attempt": 1, "failures": 0, "deaths": 0, "event_id": 1, **more}


def feed_row(feed: str, at: datetime | int, cluster: str = "primary", **more: Any) -> dict[str, Any]:
    """An available instance of a feed, which may be given by its hour in 2013."""
    key = {"cluster": cluster, "feed": feed, "instance": _instant(at)}
    there = {"state": "AVAILABLE", "version": "v", "changes": 0, "event_id": 1, "version_event": 1, "late": False}
    return {**key, **there, "landed_at": _instant(at), "seen_at": _instant(at), **more}


def _instant(at: datetime | int) -> datetime:
    return hour(at) if isinstance(at, int) else at


def fill(installation: Installation, table: Table, *rows: dict[str, Any]) -> None:
    """Writes rows, whose other columns are empty."""
    unset = {column.name: None for column in table.c}
    with installation.ledger.engine.begin() as connection:
        upsert(connection, table, [{**unset, **row} for row in rows])


def write(installation: Installation, *rows: dict[str, Any]) -> None:
    """Writes rows of feeds and of processes."""
    fill(installation, PROCESS_INSTANCES, *(row for row in rows if "process" in row))
    fill(installation, FEED_INSTANCES, *(row for row in rows if "feed" in row))
