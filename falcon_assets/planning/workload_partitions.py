"""How the assets of a workload are partitioned, and which instance a partition stands for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from falcon_assets.planning.timeline import Timeline


@dataclass(frozen=True)
class WorkloadPartitions:
    """The partitions of a workload's assets.

    They are those of the outputs where one instance makes exactly one of each, else its own. ``shift`` is the index of
    an output minus that of the instance that writes it; None: own timeline. ``at_once`` is one where several instances
    write one output instance.
    """

    nominal: Timeline
    timeline: Timeline
    shift: int | None
    at_once: int

    def nominal_of(self, partition: datetime) -> datetime:
        if self.shift is None:
            return partition
        index = self.timeline.index_at_or_before(partition)
        return self.nominal.instance((index or 0) - self.shift)

    def partition_of(self, nominal: datetime) -> datetime:
        if self.shift is None:
            return nominal
        index = self.nominal.index_at_or_before(nominal)
        return self.timeline.instance((index or 0) + self.shift)
