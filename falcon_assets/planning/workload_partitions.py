"""How the assets of a workload are partitioned, and which instance a partition stands for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from falcon_assets.planning.timeline import Timeline


@dataclass(frozen=True)
class WorkloadPartitions:
    """The partitions of a workload's assets.

    Attributes:
        nominal: The instances of the workload.
        timeline: The timeline that partitions the assets: the outputs' where one instance makes exactly one instance of
            each output, the workload's own otherwise.
        shift: Index of an output instance minus index of the instance that writes it; None: own timeline.
        at_once: How many instances may run at once: ``parallel``, or one where several write one output instance.
    """

    nominal: Timeline
    timeline: Timeline
    shift: int | None
    at_once: int

    def nominal_of(self, partition: datetime) -> datetime:
        """The nominal time of the instance behind a partition, inside the validity or not."""
        if self.shift is None:
            return partition
        index = self.timeline.index_at_or_before(partition)
        return self.nominal.instance((index or 0) - self.shift)

    def partition_of(self, nominal: datetime) -> datetime:
        """The partition that an instance writes; the inverse of :meth:`nominal_of`."""
        if self.shift is None:
            return nominal
        index = self.nominal.index_at_or_before(nominal)
        return self.timeline.instance((index or 0) + self.shift)
