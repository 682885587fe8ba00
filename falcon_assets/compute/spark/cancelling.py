"""Spark jobs that end when their computation is cancelled, while other jobs of the session go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from uuid import uuid4

from pyspark.sql import SparkSession

from falcon_assets.base.cancellation import current_cancellation
from falcon_assets.compute.spark.failures import SPARK_ERRORS


@contextmanager
def cancellable_jobs(session: SparkSession) -> Iterator[None]:
    """Cancels the Spark jobs of this thread with their computation; raises CancelledError if that is cancelled."""
    tag = f"falcon-{uuid4().hex}"
    if isinstance(session, SparkSession):  # Connect's is a class of its own
        context = session.sparkContext
        context.setInterruptOnCancel(True)  # of this thread: what its tasks wait for does not hold them
        begin, end = context.addJobTag, context.removeJobTag
        cancel: Callable[[str], object] = context.cancelJobsWithTag
    else:
        begin, end, cancel = session.addTag, session.removeTag, session.interruptTag
    begin(tag)
    try:
        with ended_quietly(partial(cancel, tag)):
            yield
    finally:
        _quietly(partial(end, tag))


@contextmanager
def ended_quietly(cancel: Callable[[], object]) -> Iterator[None]:
    """Calls ``cancel`` when the computation is cancelled, ignoring errors; raises CancelledError if it already is."""
    with current_cancellation().ended_by(partial(_quietly, cancel)):
        yield


def _quietly(action: Callable[[], object]) -> None:
    with suppress(*SPARK_ERRORS, OSError, AttributeError):  # a context that was stopped has no JVM object
        action()
