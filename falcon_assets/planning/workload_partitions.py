"""How the assets of a workload are partitioned, and which instance a partition stands for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from falcon_assets.planning.timeline import Timeline


@dataclass(frozen=True)
class WorkloadPartitions:
    """``shift``: index of an output minus index of the instance that writes it; None: partitioned by its own instances.

    ``at_once`` is one where several instances write one output instance.
    """

    nominal: Timeline
    timeline: Timeline
    shift: int | None
    at_once: int

    def nominal_of(self, partition: datetime) -> datetime:
        """May lie outside the validity."""
        if self.shift is None:
            return partition
        index = self.timeline.index_at_or_before(partition)
        return self.nominal.instance((index or 0) - self.shift)

    def partition_of(self, nominal: datetime) -> datetime:
        if self.shift is None:
            return nominal
        index = self.nominal.index_at_or_before(nominal)
        return self.timeline.instance((index or 0) + self.shift)
