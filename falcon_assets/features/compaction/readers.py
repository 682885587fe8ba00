"""Who is reading an instance: what replaces its files waits for them, as their paths go."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import or_, select

from falcon_assets.base.cancellation import current_cancellation
from falcon_assets.errors import BeingWrittenError, ExpressionError
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.history.tables import PROCESS_INSTANCES
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.input_windows import input_instances
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.planning.workloads import CompactionWorkload, Workload

_LOOKS_EVERY_SECONDS = 2.0
_PATIENCE_SECONDS = 900.0
_STARTS_WITHIN_SECONDS = 30.0
"""A run that is queued for longer may wait for the slot that this run has."""


@dataclass(frozen=True)
class InstanceReaders:
    """The workloads that may read instances of a compacted feed on its cluster."""

    compaction: CompactionWorkload
    workloads: Collection[Workload]
    ledger: Ledger

    @classmethod
    def of(cls, compaction: CompactionWorkload, workloads: Collection[Workload], ledger: Ledger) -> InstanceReaders:
        feed, cluster = compaction.entity.name, compaction.cluster
        here = [one for one in workloads if one.reads_on == cluster and one.kind != "compaction"]
        reading = [one for one in here if any(declared.feed == feed for declared in one.inputs)]
        return cls(compaction, reading, ledger)

    def wait_for_none(self, instance: datetime) -> None:
        """Returns when nobody reads it; raises BeingWrittenError if that takes too long, CancelledError."""
        began = time.monotonic()
        while (reader := next(self.reading(instance, time.monotonic() - began), None)) is not None:
            current_cancellation().check()
            if time.monotonic() - began > _PATIENCE_SECONDS:
                where = f"{self.compaction.name} on {self.compaction.cluster} at {format_instant(instance)}"
                raise BeingWrittenError(f"{where}: {reader} is reading it, since long: nothing is published")
            time.sleep(_LOOKS_EVERY_SECONDS)

    def reading(self, instance: datetime, waited: float = 0) -> Iterator[str]:
        """The running instances that read it, or may do so; for some seconds also those whose run begins."""
        if not self.workloads:
            return
        self.ledger.catch_up()
        row = PROCESS_INSTANCES.c
        reads = row.state == InstanceState.RUNNING.value
        if waited < _STARTS_WITHIN_SECONDS:
            reads = or_(reads, row.queued_run.is_not(None))
        for workload in self.workloads:
            own = (row.process == workload.name, row.cluster == workload.cluster, reads)
            with self.ledger.engine.connect() as connection:
                nominals = [*connection.execute(select(row.nominal).where(*own)).scalars()]
            yield from (
                f"{workload.name} {format_instant(nominal)}"
                for nominal in nominals
                if self._reads(workload, nominal, instance)
            )

    def _reads(self, workload: Workload, nominal: datetime, instance: datetime) -> bool:
        line = feed_timeline(self.compaction.entity, self.compaction.cluster)
        for declared in workload.inputs:
            if declared.feed != self.compaction.entity.name:
                continue
            try:
                window = input_instances(declared, line, nominal, workload.timezone) if declared.is_of_times else None
            except ExpressionError:
                continue  # beyond the calendar
            if window is None or instance in window:
                return True
        return False
