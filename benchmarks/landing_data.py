"""What lands in the landing benchmark, and what is computed from it: the same on both sides."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

SCHEMA = "carrier string, dep_delay double"
QUERY = "SELECT carrier, count(*) AS flights, sum(dep_delay) AS delay_minutes FROM flights GROUP BY carrier"
CONFS = {"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"}
FLAG = "_SUCCESS"
_ROWS = [{"carrier": carrier, "dep_delay": float(minutes)} for carrier in ("AA", "UA", "B6") for minutes in range(20)]


def recent_hours(count: int) -> list[datetime]:
    """The hours that land, oldest first: the last ones that are over, as in real life."""
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    return [now - timedelta(hours=back) for back in range(count + 1, 1, -1)]


def name_of(hour: datetime) -> str:
    """The folder of an hour."""
    return f"{hour:%Y-%m-%d-%H}"


def land(data: Path, hour: datetime) -> None:
    """Writes the hour's flights, and then their flag."""
    folder = data / "raw" / name_of(hour)
    folder.mkdir(parents=True)
    (folder / "flights.json").write_text("".join(f"{json.dumps(row)}\n" for row in _ROWS))
    (folder / FLAG).touch()
