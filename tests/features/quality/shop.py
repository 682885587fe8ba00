"""A feed with checks, and data that lands for it."""

from __future__ import annotations

import json
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import text

from falcon_assets.features.landing.operations import collect_instances
from falcon_assets.features.quality.sensors import CheckingPass
from falcon_assets.features.quality.store import VerdictRow, verdicts
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.installation import Installation
from tests.builders import cluster_yaml
from tests.ledger.histories import empty

CHECKS = """
  - {name: enough, rule: row_count, min: 2}
  - {rule: not_null, columns: [item], severity: warn}
  - {rule: unique, columns: [id]}
  - {rule: in_range, column: n, min: 0}
"""
PLACE = "{data: '/PATH/${YEAR}-${MONTH}-${DAY}-${HOUR}'}"


def feed(name: str = "sales", checks: str = CHECKS, more: str = "") -> str:
    place = PLACE.replace("PATH", name)
    return f"""
---
kind: feed
name: {name}
frequency: hours(1)
schedule: true
format: json
schema: "id int, item string, n int"
locations: {place}
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}}}]
{f"checks:{checks}" if checks else ""}{more}
"""


def shop(checks: str = CHECKS, more: str = "") -> dict[str, str]:
    return {"all.yaml": cluster_yaml() + feed(checks=checks, more=more)}


def at(hour: int) -> datetime:
    return parse_instant(f"2013-01-01T{hour:02}:00Z")


def land(installation: Installation, hour: int, *rows: dict[str, Any], name: str = "sales") -> Path:
    """Lands rows and has the collector's operation record them."""
    folder = installation.settings.home / f"data/primary/{name}/2013-01-01-{hour:02}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "part.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    collect_instances(installation, name, at(hour), at(hour))
    return folder


GOOD = ({"id": 1, "item": "a", "n": 1}, {"id": 2, "item": "b", "n": 2})
BAD = ({"id": 1, "item": None, "n": -1}, {"id": 1, "item": "b", "n": 2})


def anew(installation: Installation) -> Installation:
    """As if nothing had happened there yet."""
    shutil.rmtree(installation.settings.home / "data", ignore_errors=True)
    engine = installation.ledger.engine
    empty(engine)
    with engine.begin() as connection:
        for table in ("asset_check_executions", "asset_event_tags", "event_logs", "asset_keys", "runs"):
            connection.execute(text(f"DELETE FROM {table}"))
    return installation


def checking(installation: Installation) -> CheckingPass:
    entities = installation.entities
    return CheckingPass(entities, entities.cluster("primary"), installation.settings)


def verdict(installation: Installation, hour: int, name: str = "sales") -> VerdictRow | None:
    installation.ledger.catch_up()
    with installation.ledger.engine.connect() as connection:
        return verdicts(connection, [("primary", name, at(hour))]).get(("primary", name, at(hour)))
