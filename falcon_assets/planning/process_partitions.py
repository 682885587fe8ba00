"""How the assets of a process are partitioned, and which process instance a partition stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process
from falcon_assets.planning.index_shift import index_shift
from falcon_assets.planning.replication import replicated_timeline
from falcon_assets.planning.replication_process import Replication
from falcon_assets.planning.timeline import Timeline, feed_timeline, process_timeline


@dataclass(frozen=True)
class ProcessPartitions:
    """The partitions of a process's assets on one cluster.

    Attributes:
        nominal: The timeline of the process.
        timeline: The timeline that partitions the assets: the outputs' where one process instance makes exactly one
            instance of each output, the process's own otherwise.
        shift: Index of an output instance minus index of the process instance that writes it; None: own timeline.
    """

    nominal: Timeline
    timeline: Timeline
    shift: int | None

    def nominal_of(self, partition: datetime) -> datetime:
        """The nominal time of the process instance behind a partition, inside its validity or not."""
        if self.shift is None:
            return partition
        index = self.timeline.index_at_or_before(partition)
        return self.nominal.instance((index or 0) - self.shift)

    def partition_of(self, nominal: datetime) -> datetime:
        """The partition that a process instance writes; the inverse of :meth:`nominal_of`."""
        if self.shift is None:
            return nominal
        index = self.nominal.index_at_or_before(nominal)
        return self.timeline.instance((index or 0) + self.shift)


def process_partitions(process: Process, cluster: str, feeds: Mapping[str, Feed]) -> ProcessPartitions:
    """How the assets of ``process`` on ``cluster`` are partitioned.

    Raises:
        UnknownEntityError: the process or one of its feeds is not on that cluster.
    """
    nominal = process_timeline(process, cluster)
    if isinstance(process, Replication):
        return _replicated(process, nominal, feeds[process.feed])
    timelines = [feed_timeline(feeds[output.feed], cluster) for output in process.outputs]
    shifts = {
        index_shift(nominal, timeline, output.instance.call, process.timezone)
        for output, timeline in zip(process.outputs, timelines, strict=True)
    }
    shift = shifts.pop() if len(shifts) == 1 and len(set(timelines)) == 1 else None
    return ProcessPartitions(nominal, nominal if shift is None else timelines[0], shift)


def _replicated(replication: Replication, nominal: Timeline, feed: Feed) -> ProcessPartitions:
    """The asset has the instances that any of the sources brings."""
    asset = replicated_timeline(feed, replication.target) or nominal
    return ProcessPartitions(nominal, asset, asset.index_at_or_before(nominal.start))
