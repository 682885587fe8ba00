"""Any number of hourly processes, each with one feed that lands and one that it produces, and their history."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import dagster as dg
from dagster._core.events import DagsterEvent, StepMaterializationData
from dagster._core.instance.utils import RUNLESS_JOB_NAME, RUNLESS_RUN_ID

from falcon_assets.history.events.event_log import materialization
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.model.instant import format_instant, parse_instant

CLUSTER = "primary"
FIRST = parse_instant("2013-01-01T00:00Z")
_CLUSTER = f"""\
kind: cluster
name: {CLUSTER}
interfaces: {{write: {{endpoint: data}}, execute: {{endpoint: "local[2]"}}}}
"""
_FEED = """\
---
kind: feed
name: {name}
frequency: hours(1)
availability_flag: _SUCCESS
late_arrival: {{cut_off: hours(6)}}
locations: {{data: "/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}}}]
"""
_PROCESS = """\
---
kind: process
name: process-{number}
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}}}]
frequency: hours(1)
inputs: [{{name: landed, feed: landed-{number}, start: "now(0,0)", end: "now(0,0)"}}]
outputs: [{{name: made, feed: made-{number}, instance: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: copy.sql}}
schedule: true
"""

_OF_FILE = 500
"""Processes in a file, which must not be longer than a million bytes."""


def write_graph(root: Path, processes: int) -> None:
    """The definitions; each process reads the hour of ``landed-N`` and writes the same hour of ``made-N``."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "cluster.yaml").write_text(_CLUSTER)
    for first in range(0, processes, _OF_FILE):
        parts = []
        for number in range(first, min(first + _OF_FILE, processes)):
            parts += [_FEED.format(name=f"{kind}-{number}") for kind in ("landed", "made")]
            parts.append(_PROCESS.format(number=number))
        (root / f"graph-{first}.yaml").write_text("".join(parts))
    (root / "copy.sql").write_text("SELECT * FROM landed\n")


def hours(count: int) -> list[datetime]:
    """The first hours."""
    return [FIRST + timedelta(hours=number) for number in range(count)]


def land(instance: dg.DagsterInstance, feeds: Iterable[str], instants: Sequence[datetime]) -> None:
    """Records the instances of the feeds as materializations from outside, a feed at a time.

    ``DagsterInstance.report_runless_asset_event`` does the same for one at a time, thirty times slower.
    """
    for feed in feeds:
        instance.event_log_storage.store_event_batch([_landed(feed, instant) for instant in instants])


def _landed(feed: str, instant: datetime) -> dg.EventLogEntry:
    there = FeedInstanceAvailable(CLUSTER, feed, instant, "1", instant, bytes=1, files=1)
    event = materialization(dg.AssetKey([CLUSTER, feed]), format_instant(instant), there)
    return dg.EventLogEntry(
        error_info=None,
        level=10,
        user_message="",
        run_id=RUNLESS_RUN_ID,
        timestamp=time.time(),
        job_name=RUNLESS_JOB_NAME,
        dagster_event=DagsterEvent(
            event_type_value=dg.DagsterEventType.ASSET_MATERIALIZATION.value,
            job_name=RUNLESS_JOB_NAME,
            event_specific_data=StepMaterializationData(event),
        ),
    )
