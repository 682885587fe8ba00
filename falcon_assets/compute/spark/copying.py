"""The distributed copy: the tasks of an instance copy on Spark's executors."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from falcon_assets.compute.executor import Executor
from falcon_assets.compute.spark.cancelling import cancellable_jobs
from falcon_assets.compute.spark.failures import SPARK_ERRORS, explain
from falcon_assets.errors import StorageError
from falcon_assets.storage.copying.copy_task import CopyJob, CopyProgress, ProgressReader, TaskSummary, run_task
from falcon_assets.storage.copying.instance_copy import CopyResult, InstanceCopy

if TYPE_CHECKING:
    import pyarrow as pa


_PROGRESS_SECONDS = 1.0


def copy_instance(
    executor: Executor, copy: InstanceCopy, progress: Callable[[CopyProgress], object] | None = None
) -> CopyResult:
    """Copies and verifies one source's part of an instance, each task of its plan as a task of Spark.

    Small copies are made in this process; ``executor``, whose workers need this package and both stores, makes the
    larger ones. ``progress`` is called about once a second, from another thread, and at the end.

    Raises:
        StorageError: a file could not be copied, the source changed meanwhile, or Spark failed. Verified files are not
            copied again by the next attempt.
    """
    if not copy.plan.tasks:
        return copy.finish(TaskSummary())
    job = copy.job
    spark = None if copy.plan.is_small else executor.session()  # while Spark starts there is no progress to show
    with _reported(job, copy, progress):
        done = copy.run_here() if spark is None else _done(spark, job, len(copy.plan.tasks))
    return copy.finish(done)


def _done(session: SparkSession, job: CopyJob, tasks: int) -> TaskSummary:
    numbers = session.range(0, tasks, 1, tasks)
    try:
        with cancellable_jobs(session):
            rows = numbers.mapInArrow(partial(_run_tasks, job), "summary binary").collect()
    except SPARK_ERRORS as error:
        raise StorageError(f"the copy failed in Spark: {explain(error)}") from None
    return TaskSummary.together([TaskSummary(**json.loads(row[0])) for row in rows])


def _run_tasks(job: CopyJob, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs in Spark's workers; summaries are JSON, because file names need not be Unicode."""
    import pyarrow as pa  # noqa: PLC0415 - only the workers need it, and every code location would import it

    for batch in batches:
        for number in batch.column(0).to_pylist():
            summary = json.dumps(asdict(TaskSummary.of(run_task(job, number))))
            yield pa.RecordBatch.from_arrays([pa.array([summary.encode()], pa.binary())], ["summary"])


@contextmanager
def _reported(job: CopyJob, copy: InstanceCopy, progress: Callable[[CopyProgress], object] | None) -> Iterator[None]:
    if progress is None:
        yield
        return
    reader = ProgressReader(job, {step.name: step.size for steps in copy.plan.tasks for step in steps})
    ended, errors = threading.Event(), list[Exception]()

    def watch() -> None:
        try:
            while not ended.wait(_PROGRESS_SECONDS):
                progress(reader())
        except Exception as error:
            errors.append(error)

    watcher = threading.Thread(target=watch, name="copy-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
    if errors:
        raise errors[0]
    progress(reader())
