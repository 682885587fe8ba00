"""Runs pending instances, each stretch of them through a real Dagster run."""

from __future__ import annotations

import threading
from collections.abc import Callable

import dagster as dg

from falcon_assets.demo.pending import PendingWork
from falcon_assets.errors import WorkflowError
from falcon_assets.orchestration import names
from falcon_assets.orchestration.partitions import key_of

RANGE_TAGS = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")
"""Dagster's tags of a run over a range of partitions."""
_POLL_SECONDS = 0.5


def run(
    work: PendingWork, definitions: dg.Definitions, instance: dg.DagsterInstance, progress: Callable[[int], None]
) -> None:
    """Runs the pending instances, one Dagster run per contiguous stretch.

    Args:
        work: What to run.
        definitions: The code location.
        instance: Where the runs are recorded.
        progress: Called now and then with the number of instances that were published since it started.

    Raises:
        WorkflowError: a run failed; its text is the failure's.
    """
    job = definitions.resolve_job_def(names.job_name(work.cluster.name, work.process.name))
    watch = _Watch(work, instance, progress)
    with watch:
        for start, end in work.ranges:
            keys = [key_of(work.partitions.timeline, at) for at in (start, end)]
            result = job.execute_in_process(
                instance=instance,
                tags=dict(zip(RANGE_TAGS, keys, strict=True)),
                run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
                raise_on_error=False,
            )
            if not result.success:
                raise WorkflowError(_failure(result))


class _Watch:
    """Tells how many instances Dagster has recorded, while a run goes on in another thread."""

    def __init__(self, work: PendingWork, instance: dg.DagsterInstance, progress: Callable[[int], None]) -> None:
        key = names.asset_key(work.cluster.name, work.process.outputs[0].feed)
        newest = instance.fetch_materializations(key, limit=1).records
        self._after = dg.AssetRecordsFilter(key, after_storage_id=newest[0].storage_id if newest else 0)
        self._instance, self._progress, self._limit = instance, progress, work.count
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _count(self) -> None:
        if self._limit:
            self._progress(len(self._instance.fetch_materializations(self._after, limit=self._limit).records))

    def _run(self) -> None:
        while not self._stop.wait(_POLL_SECONDS):
            self._count()

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._count()


def _failure(result: dg.ExecuteInProcessResult) -> str:
    said = [event.step_failure_data for event in result.all_events if event.is_step_failure]
    texts = [one.user_failure_data.description or "" for one in said if one.user_failure_data]
    return "\n".join(texts) or f"run {result.run_id} failed; the UI shows why: make up"
