"""Which instances a process has, how its assets are partitioned, and which instance a partition stands for."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from falcon_assets.errors import ExpressionError
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Output, Process
from falcon_assets.planning.replication.replication_process import Replication
from falcon_assets.planning.replication.targets import replicated_timeline
from falcon_assets.planning.time.timeline import Timeline, feed_timeline, process_timeline
from falcon_assets.planning.windows.evaluate import evaluate_time
from falcon_assets.planning.windows.index_shift import index_shift


@dataclass(frozen=True)
class ProcessPartitions:
    """The partitions of a process's assets on one cluster.

    Attributes:
        nominal: The instances of the process, see :func:`process_instances`.
        timeline: The timeline that partitions the assets: the outputs' where one process instance makes exactly one
            instance of each output, the process's own otherwise.
        shift: Index of an output instance minus index of the process instance that writes it; None: own timeline.
        at_once: How many instances may run at once: ``parallel``, or one where several write one output instance.
    """

    nominal: Timeline
    timeline: Timeline
    shift: int | None
    at_once: int

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
    nominal = process_instances(process, cluster, feeds)
    if isinstance(process, Replication):
        return _replicated(process, nominal, feeds[process.feed])
    timelines = [feed_timeline(feeds[output.feed], cluster) for output in process.outputs]
    shifts = {
        index_shift(nominal, timeline, output.instance.call, process.timezone)
        for output, timeline in zip(process.outputs, timelines, strict=True)
    }
    shift = shifts.pop() if len(shifts) == 1 and len(set(timelines)) == 1 else None
    own = nominal if nominal.count else process_timeline(process, cluster)  # Dagster needs a partition
    shared = shift is None and _share_outputs(process, nominal, timelines)
    at_once = 1 if shared else process.parallel
    return ProcessPartitions(nominal, own if shift is None else timelines[0], shift, at_once)


def process_instances(process: Process, cluster: str, feeds: Mapping[str, Feed]) -> Timeline:
    """The instances of ``process`` on ``cluster``: those of its validity whose outputs all exist.

    What an output resolves to outside the validity of its feed does not exist; nobody waits for an instance that would
    write it, and nothing runs it. Of a process whose outputs never meet there are none.

    Raises:
        UnknownEntityError: the process or the feed of an output is not on that cluster.
    """
    nominal = process_timeline(process, cluster)
    if isinstance(process, Replication):
        return nominal  # made of what both sides have
    spans = [
        written(nominal, feed_timeline(feeds[one.feed], cluster), one, process.timezone) for one in process.outputs
    ]
    first = max((span.start for span in spans), default=0)
    stop = min((span.stop for span in spans), default=nominal.count)
    return nominal if (first, stop) == (0, nominal.count) else nominal.cut(range(first, stop))


def written(nominal: Timeline, feed: Timeline, output: Output, timezone: str) -> range:
    """Indexes of the process instances whose ``output`` exists.

    The output only grows with the nominal time, so both ends are found by bisection.
    """

    def index(k: int) -> int:
        try:
            return feed.index_at_or_before(evaluate_time(output.instance.call, nominal.instance(k), timezone))
        except ExpressionError:  # beyond the calendar
            return -1 if k < nominal.count // 2 else feed.count

    everything = range(nominal.count)
    if everything and index(0) >= 0 and index(everything[-1]) < feed.count:
        return everything
    return range(bisect_left(everything, 0, key=index), bisect_left(everything, feed.count, key=index))


def _share_outputs(process: Process, nominal: Timeline, timelines: Sequence[Timeline]) -> bool:
    """Whether an output has fewer instances than the process has to write them, as days that are made every hour."""
    if nominal.count < 2:
        return False
    for output, feed in zip(process.outputs, timelines, strict=True):
        first, last = (
            feed.index_at_or_before(evaluate_time(output.instance.call, nominal.instance(k), process.timezone))
            for k in (nominal.first, nominal.count - 1)
        )
        if last - first < nominal.count - 1 - nominal.first:
            return True
    return False


def _replicated(replication: Replication, nominal: Timeline, feed: Feed) -> ProcessPartitions:
    """The asset has the instances that any of the sources brings."""
    asset = replicated_timeline(feed, replication.target) or nominal
    return ProcessPartitions(nominal, asset, asset.index_at_or_before(nominal.start), replication.parallel)
