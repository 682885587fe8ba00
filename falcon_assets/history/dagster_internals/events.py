"""Many events in one statement: the public way, ``report_runless_asset_event`` or ``log_event``, writes them singly."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Generic, TypeAlias, TypeVar, cast

import dagster as dg
from dagster._core.events import AssetObservationData, StepMaterializationData  # what events in the log carry
from dagster._core.instance.utils import RUNLESS_JOB_NAME, RUNLESS_RUN_ID  # what Dagster says in the place of a run

from falcon_assets.errors import FalconError

Event: TypeAlias = dg.AssetMaterialization | dg.AssetObservation
_Event = TypeVar("_Event")
Record: TypeAlias = Callable[[Sequence[Event]], None]
"""Writes events, in order, before it returns: all of them, or none."""
AT_ONCE = 500
"""Events per statement: more do not make it faster."""


def record_in_run(instance: dg.DagsterInstance, run: dg.DagsterRun, step: str) -> Record:
    def record(events: Sequence[Event]) -> None:
        entries = [_entry(event, run.run_id, run.job_name, logging.DEBUG, step) for event in events]
        instance.event_log_storage.store_event_batch(entries)

    return record


def record_outside_runs(instance: dg.DagsterInstance) -> Record:
    """Records without a run, as ``report_runless_asset_event`` does, but many times faster."""

    def record(events: Sequence[Event]) -> None:
        entries = [_entry(event, RUNLESS_RUN_ID, RUNLESS_JOB_NAME, logging.INFO) for event in events]
        instance.event_log_storage.store_event_batch(entries)

    return record


def record_in_step(context: dg.OpExecutionContext) -> Callable[[Sequence[Event | dg.AssetCheckEvaluation]], None]:
    """Evaluations of checks are written singly, in their place."""
    together = record_in_run(context.instance, context.run, str(context.op_handle))

    def record(events: Sequence[Event | dg.AssetCheckEvaluation]) -> None:
        written = 0
        for at, event in enumerate(events):
            if isinstance(event, dg.AssetCheckEvaluation):
                together(cast(Sequence[Event], events[written:at]))
                context.log_event(event)  # type: ignore[arg-type]  # it takes them, too
                written = at + 1
        together(cast(Sequence[Event], events[written:]))

    return record


class Batches(AbstractContextManager["Batches[_Event]"], Generic[_Event]):
    """Records events in batches, and the rest at the end, also where the block ends with a :class:`FalconError`."""

    def __init__(self, record: Callable[[Sequence[_Event]], None]) -> None:
        self._record, self._waiting = record, list[_Event]()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, FalconError):
            self.write()

    def add(self, event: _Event) -> None:
        self._waiting.append(event)
        if len(self._waiting) >= AT_ONCE:
            self.write()

    def write(self) -> None:
        """Records what waits; after an error it still does."""
        if self._waiting:
            self._record(self._waiting)
            self._waiting = []


def _entry(event: Event, run_id: str, job: str, level: int, step: str | None = None) -> dg.EventLogEntry:
    kind, data = (
        (dg.DagsterEventType.ASSET_MATERIALIZATION, StepMaterializationData(event))
        if isinstance(event, dg.AssetMaterialization)
        else (dg.DagsterEventType.ASSET_OBSERVATION, AssetObservationData(event))
    )
    named = f"Materialized value {event.label}." if step and isinstance(event, dg.AssetMaterialization) else None
    message = event.description or named
    said = dg.DagsterEvent(
        event_type_value=kind.value,
        job_name=job,
        step_key=step,
        event_specific_data=data,
        message=message,
    )
    return dg.EventLogEntry(  # type: ignore[no-untyped-call]  # Dagster's class has no annotations here
        error_info=None,
        level=level,
        user_message=message or "",
        run_id=run_id,
        timestamp=time.time(),
        step_key=step,
        job_name=job,
        dagster_event=said,
    )
