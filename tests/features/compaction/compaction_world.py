"""A feed in Parquet that is compacted on one cluster and copied to another one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import select

from falcon_assets.history.tables import CONSUMED, FEED_INSTANCES, PROCESS_INSTANCES
from tests.builders import cluster_yaml
from tests.hours import hour
from tests.orchestration.replication_world import ReplicationWorld

CLICKS = """---
kind: feed
name: clicks
frequency: hours(1)
availability_flag: _SUCCESS
late_arrival: {cut_off: hours(6)}
compact: {sort: [user_id], COMPACT}
locations: {data: "/clicks/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
clusters:
  - {name: east, type: source, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T08:00Z}}
  - {name: west, type: target, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T08:00Z}}
schedule: true
"""


def clicks(compact: str = "target_file_size: 1MB", more: str = "") -> dict[str, str]:
    feed = CLICKS.replace("COMPACT", compact).replace("schedule: true", f"{more}\nschedule: true")
    return {"all.yaml": f"{cluster_yaml('east')}{cluster_yaml('west')}{feed}"}


def folder(world: ReplicationWorld, number: int = 1, cluster: str = "east") -> Path:
    return world.folder(cluster, "clicks", number)


def land(world: ReplicationWorld, number: int = 1, **files: Sequence[int]) -> None:
    there = folder(world, number)
    there.mkdir(parents=True, exist_ok=True)
    for name, users in files.items():
        pq.write_table(pa.table({"user_id": users, "from": [name] * len(users)}), there / f"{name}.parquet")
    (there / "_SUCCESS").touch()


def users(place: Path) -> list[int]:
    """In the order of files and rows."""
    return [one for path in sorted(place.glob("*.parquet")) for one in pq.read_table(path)["user_id"].to_pylist()]


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.glob("*.parquet"))


def state(world: ReplicationWorld, name: str, number: int = 1) -> tuple[str, int] | None:
    """The state and the attempt of an instance of a workload."""
    world.ledger.catch_up()
    row = PROCESS_INSTANCES.c
    with world.ledger.engine.connect() as connection:
        asked = select(row.state, row.attempt).where(row.process == name, row.nominal == hour(number))
        found = connection.execute(asked).one_or_none()
    return (found.state, found.attempt) if found else None


def row_of(world: ReplicationWorld, number: int = 1, cluster: str = "east") -> Any:
    world.ledger.catch_up()
    there = FEED_INSTANCES.c
    with world.ledger.engine.connect() as connection:
        own = (there.cluster == cluster, there.feed == "clicks", there.instance == hour(number))
        return connection.execute(select(FEED_INSTANCES).where(*own)).one()


def stale(world: ReplicationWorld) -> list[tuple[str, int]]:
    world.ledger.catch_up()
    with world.ledger.engine.connect() as connection:
        found = connection.execute(select(CONSUMED.c.process, CONSUMED.c.nominal).where(CONSUMED.c.stale))
        return sorted((process, nominal.hour) for process, nominal in found)
