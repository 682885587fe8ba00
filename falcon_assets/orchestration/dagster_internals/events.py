"""Many events in one statement: the public way, ``report_runless_asset_event`` or ``log_event``, writes them singly."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

import dagster as dg
from dagster._core.events import AssetObservationData  # what an observation in the log carries
from dagster._core.instance.utils import RUNLESS_JOB_NAME, RUNLESS_RUN_ID  # what Dagster says in the place of a run

Record: TypeAlias = Callable[[Sequence[dg.AssetObservation]], None]
"""Writes events about one asset down, all before it returns."""


def record_in_run(instance: dg.DagsterInstance, run: dg.DagsterRun, step: str) -> Record:
    """Records in a step of a run, as the context of an op does, but many times faster.

    Args:
        instance: Whose run it is.
        run: The run.
        step: Key of the step.
    """

    def record(events: Sequence[dg.AssetObservation]) -> None:
        entries = [_entry(event, run.run_id, run.job_name, step) for event in events]
        instance.event_log_storage.store_event_batch(entries)

    return record


def record_outside_runs(instance: dg.DagsterInstance) -> Record:
    """Records what no run says, as ``report_runless_asset_event`` does, but many times faster."""

    def record(events: Sequence[dg.AssetObservation]) -> None:
        entries = [_entry(event, RUNLESS_RUN_ID, RUNLESS_JOB_NAME, None) for event in events]
        instance.event_log_storage.store_event_batch(entries)

    return record


def record_in_step(context: dg.OpExecutionContext) -> Record:
    """Records in the step that is being executed."""
    return record_in_run(context.instance, context.run, str(context.op_handle))


def _entry(event: dg.AssetObservation, run_id: str, job: str, step: str | None) -> dg.EventLogEntry:
    said = dg.DagsterEvent(
        event_type_value=dg.DagsterEventType.ASSET_OBSERVATION.value,
        job_name=job,
        step_key=step,
        event_specific_data=AssetObservationData(event),
        message=event.description,
    )
    return dg.EventLogEntry(  # type: ignore[no-untyped-call]  # Dagster's class has no annotations here
        error_info=None,
        level=logging.DEBUG,
        user_message=event.description or "",
        run_id=run_id,
        timestamp=time.time(),
        step_key=step,
        job_name=job,
        dagster_event=said,
    )
