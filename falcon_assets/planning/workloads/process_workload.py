"""Processes as workloads: an instance runs a workflow."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cached_property

from falcon_assets.errors import ExpressionError
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Output, Process
from falcon_assets.planning.instances.dagster_names import op_name
from falcon_assets.planning.instances.workload_partitions import WorkloadPartitions
from falcon_assets.planning.time.timeline import Timeline, feed_timeline, process_timeline
from falcon_assets.planning.windows.evaluate import evaluate_time
from falcon_assets.planning.windows.index_shift import index_shift
from falcon_assets.planning.workloads.workload import Workload


class ProcessWorkload(Workload):
    """A process on one of its clusters; make it once, for it remembers its instances."""

    entity: Process

    def __init__(self, process: Process, cluster: str, feeds: Mapping[str, Feed]) -> None:
        super().__init__(
            name=process.name,
            cluster=cluster,
            reads_on=cluster,
            entity=process,
            feeds=feeds,
            pipelines=process.pipelines,
            op_name=op_name(cluster, process.name),
            description=_described(process, cluster),
            inputs=process.inputs,
            outputs=process.outputs,
            frequency=process.frequency,
            timezone=process.timezone,
            timeout=process.timeout,
            parallel=process.parallel,
            order=process.order,
            retry=process.retry,
            late=process.late_process,
        )

    @cached_property
    def timeline(self) -> Timeline:
        """Its validity, as far as its outputs all exist.

        What an output resolves to outside the validity of its feed does not exist; nobody waits for an instance that
        would write it, and nothing runs it. Of a process whose outputs never meet there are none.
        """
        nominal = process_timeline(self.entity, self.cluster)
        spans = [written(nominal, feed, output, self.timezone) for output, feed in self._written]
        first = max((span.start for span in spans), default=0)
        stop = min((span.stop for span in spans), default=nominal.count)
        return nominal if (first, stop) == (0, nominal.count) else nominal.cut(range(first, stop))

    @cached_property
    def partitions(self) -> WorkloadPartitions:
        """See :attr:`Workload.partitions`."""
        nominal, timelines = self.timeline, {feed for _, feed in self._written}
        shifts = {index_shift(nominal, feed, output.instance.call, self.timezone) for output, feed in self._written}
        shift = shifts.pop() if len(shifts) == len(timelines) == 1 else None
        own = nominal if nominal.count else process_timeline(self.entity, self.cluster)  # Dagster needs a partition
        shared = shift is None and _share_outputs(nominal, self._written, self.timezone)
        at_once = 1 if shared or self.snapshots else self.parallel
        return WorkloadPartitions(nominal, own if shift is None else timelines.pop(), shift, at_once)

    @property
    def _written(self) -> list[tuple[Output, Timeline]]:
        """Its outputs, and the instances of their feeds."""
        return [(one, feed_timeline(self.feeds[one.feed], self.cluster)) for one in self.outputs]


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


def _share_outputs(nominal: Timeline, outputs: Sequence[tuple[Output, Timeline]], timezone: str) -> bool:
    """Whether an output has fewer instances than the process has to write them, as days that are made every hour."""
    if nominal.count < 2:
        return False
    for output, feed in outputs:
        first, last = (
            feed.index_at_or_before(evaluate_time(output.instance.call, nominal.instance(k), timezone))
            for k in (nominal.first, nominal.count - 1)
        )
        if last - first < nominal.count - 1 - nominal.first:
            return True
    return False


def _described(process: Process, cluster: str) -> str:
    reads = ", ".join(dict.fromkeys(one.feed for one in process.inputs))
    writes = ", ".join(one.feed for one in process.outputs)
    does = [f"reads {reads}"] * bool(reads) + [f"writes {writes}"] * bool(writes)
    said = f"{process.name} on {cluster}, every {process.frequency}: {' and '.join(does) or 'reads nothing'}"
    return f"{process.description}\n\n{said}" if process.description else said
