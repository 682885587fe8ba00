"""How many runs wait and work, and how many may; the instance says it by no public method."""

from __future__ import annotations

from datetime import UTC, datetime

import dagster as dg


def most_runs(instance: dg.DagsterInstance) -> int | None:
    """``concurrency.runs.max_concurrent_runs`` of ``dagster.yaml``; None: any number."""
    queue = instance.get_concurrency_config().run_queue_config
    return queue.max_concurrent_runs if queue is not None and queue.max_concurrent_runs >= 0 else None


def count_runs(instance: dg.DagsterInstance, which: dg.RunsFilter) -> int:
    """How many runs there are, without reading them."""
    return instance.get_runs_count(which)


def last_event(instance: dg.DagsterInstance, run_id: str) -> datetime | None:
    """When something happened to a run last, in real time; None: nothing did."""
    found = instance.get_records_for_run(run_id, limit=1, ascending=False).records
    return datetime.fromtimestamp(found[0].timestamp, UTC) if found else None
