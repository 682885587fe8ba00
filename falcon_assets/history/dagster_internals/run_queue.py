"""Queued and running runs, and their limit, which the instance offers by no public method."""

from __future__ import annotations

from datetime import UTC, datetime

import dagster as dg


def most_runs(instance: dg.DagsterInstance) -> int | None:
    """Returns ``concurrency.runs.max_concurrent_runs`` of ``dagster.yaml``; None: unlimited."""
    queue = instance.get_concurrency_config().run_queue_config
    return queue.max_concurrent_runs if queue is not None and queue.max_concurrent_runs >= 0 else None


def count_runs(instance: dg.DagsterInstance, which: dg.RunsFilter) -> int:
    return instance.get_runs_count(which)


def last_event(instance: dg.DagsterInstance, run_id: str) -> datetime | None:
    """Returns the time of the last event of a run, in real time; None: it has none."""
    found = instance.get_records_for_run(run_id, limit=1, ascending=False).records
    return datetime.fromtimestamp(found[0].timestamp, UTC) if found else None
