"""Who is reading an instance: what replaces its files waits for them, as their paths go."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from sqlalchemy import or_, select

from falcon_assets.base.cancellation import current_cancellation
from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import BeingWrittenError, ExpressionError
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.history.tables import PROCESS_INSTANCES
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.compactions import CompactionWorkload
from falcon_assets.planning.input_windows import input_instances
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.planning.rollups import Above, above, made_with, rollups_above
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.planning.workloads import Workload

_LOOKS_EVERY_SECONDS = 2.0
_PATIENCE_SECONDS = 900.0
_STARTS_WITHIN_SECONDS = 30.0
"""A run that is queued for longer may wait for the slot that this run has."""


@dataclass(frozen=True)
class InstanceReaders:
    """The workloads that may read instances of a compacted feed on its cluster, also through roll-ups."""

    compaction: CompactionWorkload
    store: EntityStore
    ledger: Ledger

    @cached_property
    def _rollups(self) -> Above:
        return rollups_above(self.store.rollups_on(self.compaction.cluster), self.compaction.cluster)

    @cached_property
    def _workloads(self) -> list[Workload]:
        name = self.compaction.entity.name
        feeds = {name, *(one.name for one in above([name], self._rollups))}
        here = (one for one in self.store.workloads if one.reads_on == self.compaction.cluster)
        reading = (one for one in here if any(declared.feed in feeds for declared in one.inputs))
        return [one for one in reading if one.kind != "compaction"]

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
        if not self._workloads:
            return
        self.ledger.catch_up()
        read = made_with(self.compaction.entity.name, instance, self._rollups)
        row = PROCESS_INSTANCES.c
        reads = row.state == InstanceState.RUNNING.value
        if waited < _STARTS_WITHIN_SECONDS:
            reads = or_(reads, row.queued_run.is_not(None))
        for workload in self._workloads:
            own = (row.process == workload.name, row.cluster == workload.cluster, reads)
            with self.ledger.engine.connect() as connection:
                nominals = [*connection.execute(select(row.nominal).where(*own)).scalars()]
            yield from (
                f"{workload.name} {format_instant(nominal)}"
                for nominal in nominals
                if self._reads(workload, nominal, read)
            )

    def _reads(self, workload: Workload, nominal: datetime, instances: Mapping[str, Set[datetime]]) -> bool:
        for declared in workload.inputs:
            if declared.feed not in instances:
                continue
            line = feed_timeline(self.store.feeds[declared.feed], self.compaction.cluster)
            try:
                window = input_instances(declared, line, nominal, workload.timezone) if declared.is_of_times else None
            except ExpressionError:
                continue  # beyond the calendar
            if window is None or any(one in window for one in instances[declared.feed]):
                return True
        return False
