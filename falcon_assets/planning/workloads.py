"""Workloads: whatever has instances on a cluster that wait, run, are tried again and are late."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import ClassVar, Literal

from falcon_assets.errors import ExpressionError
from falcon_assets.model.expression import InstanceExpression
from falcon_assets.model.feed import Feed, FeedCluster
from falcon_assets.model.frequency import Frequency, TimeUnit
from falcon_assets.model.process import Input, LateInput, LateProcess, Output, Process, Retry
from falcon_assets.planning.dagster_names import job_name, op_name, replication_work
from falcon_assets.planning.dependencies import own_feeds
from falcon_assets.planning.expressions import evaluate_time
from falcon_assets.planning.input_windows import nominal_of_output
from falcon_assets.planning.replication import common_timeline, replicated_timeline, replication_options
from falcon_assets.planning.timeline import Timeline, feed_timeline, process_timeline
from falcon_assets.planning.window_offsets import index_shift
from falcon_assets.planning.workload_partitions import WorkloadPartitions


@dataclass(frozen=True, eq=False, kw_only=True)
class Workload(ABC):
    """Work that is done for one instance after the other on one cluster.

    Attributes:
        name: Names it and its instances, together with the cluster.
        cluster: Where its instances are, and where they are written.
        reads_on: The cluster where its inputs are read.
        entity: Declares it; its status says whether the workload runs.
        feeds: By name, those of its inputs and outputs at least.
        pipelines: The coordinator of the first launches it.
        op_name: Of its op in Dagster; several workloads that fill one asset share it.
        description: What people wrote about it, and what it does.
        inputs: What an instance reads.
        outputs: What an instance writes; none: it is run for its effect.
        frequency: From one instance to the next.
        timezone: The calendar of its steps and expressions.
        delay: How long after its nominal time an instance is due.
        timeout: How long an instance may wait for its inputs; None: as long as the frequency suggests.
        parallel: How many instances may run at once.
        order: Which ready instance runs first.
        retry: How failed instances are tried again.
        late: What happens when an input changed after it was read; None: nothing.
    """

    name: str
    cluster: str
    reads_on: str
    entity: Feed | Process
    feeds: Mapping[str, Feed]
    pipelines: tuple[str, ...]
    op_name: str
    description: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    frequency: Frequency
    timezone: str
    delay: timedelta = timedelta()
    timeout: Frequency | None
    parallel: int
    order: Literal["FIFO", "LIFO", "LAST_ONLY"]
    retry: Retry
    late: LateProcess | None

    shares_assets: ClassVar[bool] = False
    """Whether some partitions of its assets are filled by other workloads, and have no instance of this."""

    @property
    @abstractmethod
    def timeline(self) -> Timeline:
        """Its instances.

        Raises:
            UnknownEntityError: it or the feed of an output is not on the cluster.
        """

    @property
    @abstractmethod
    def partitions(self) -> WorkloadPartitions:
        """How its assets are partitioned.

        Raises:
            UnknownEntityError: as for :attr:`timeline`.
        """

    @property
    def assets(self) -> list[str]:
        """What it makes: its output feeds; without any, an asset of its own name stands for its effect."""
        return [output.feed for output in self.outputs] or [self.name]

    @property
    def job_name(self) -> str:
        """Of its job in Dagster."""
        return job_name(self.op_name)

    @cached_property
    def snapshots(self) -> tuple[Output, ...]:
        """The outputs that all of its instances write to one place, each what the one before wrote."""
        return tuple(one for one in self.outputs if self.feeds[one.feed].snapshot)

    @cached_property
    def own_feeds(self) -> frozenset[str]:
        """The feeds that it both reads and writes in one place: its instances need those before them."""
        return own_feeds(self.inputs, self.outputs) if self.reads_on == self.cluster else frozenset()


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


_HERE = InstanceExpression.parse("now(0,0)")
LATE_POLICY = LateProcess(policy="exp-backoff", delay=Frequency(3, TimeUnit.HOURS), inputs=(LateInput(input="source"),))
"""When late changes of a source are checked (source: Falcon's defaults of feed.late.policy and frequency)."""


class ReplicationWorkload(Workload):
    """What one source brings to one target; the target's asset has what all of its sources bring.

    Its name has spaces, which no name that people give has. See :func:`replications_to`.
    """

    entity: Feed
    shares_assets = True

    def __init__(self, feed: Feed, source: FeedCluster, target: FeedCluster, timeline: Timeline) -> None:
        """The instances are given; what is wrong with the properties of the feed is raised as an ExpressionError."""
        options = replication_options(feed.properties)
        super().__init__(
            name=replication_name(feed.name, source.name),
            cluster=target.name,
            reads_on=source.name,
            entity=feed,
            feeds={feed.name: feed},
            pipelines=(replication_pipeline(target.name),),
            op_name=op_name(target.name, replication_work(feed.name)),
            description=f"Copies {feed.name} to {target.name}, every {feed.frequency}",
            inputs=(Input(name="source", feed=feed.name, start=_HERE, end=_HERE),),
            outputs=(Output(name="target", feed=feed.name, instance=_HERE),),
            frequency=feed.frequency,
            timezone=feed.timezone,
            delay=max((entry.delay.length for entry in (source, target) if entry.delay), default=timedelta()),
            timeout=options.timeout,
            parallel=1 if feed.snapshot else options.parallel,
            order=options.order,
            retry=Retry(),
            late=LATE_POLICY if feed.late_arrival else None,
        )
        self._timeline = timeline

    @property
    def timeline(self) -> Timeline:
        """What exists on both sides."""
        return self._timeline

    @cached_property
    def partitions(self) -> WorkloadPartitions:
        """Those of the asset are what any of the sources brings."""
        asset = replicated_timeline(self.entity, self.cluster) or self.timeline
        shift = asset.index_at_or_before(self.timeline.start)
        return WorkloadPartitions(self.timeline, asset, shift, self.parallel)


def replications_to(feed: Feed, target: FeedCluster) -> Iterator[ReplicationWorkload]:
    """The replications of the feed to one of its targets, one per source that brings anything.

    Raises:
        ExpressionError: a property that steers replication is not legal.
    """
    for source in feed.clusters:
        timeline = common_timeline(feed, source.name, target.name) if source.type == "source" else None
        if timeline is not None:
            yield ReplicationWorkload(feed, source, target, timeline)


def replication_name(feed: str, source: str) -> str:
    """What the replications of a feed from a source are called, on every target."""
    return f"{feed} from {source}"


def replication_pipeline(target: str) -> str:
    """What the replications to a cluster are coordinated as; no pipeline that people name has a dot."""
    return f"{target}.replication"


def makers(
    workloads: Iterable[Workload], feed: str, cluster: str, instance: datetime
) -> list[tuple[Workload, datetime]]:
    """Those of the workloads, with the nominal times, that are to bring that instance of the feed on the cluster.

    Raises:
        UnknownEntityError: the feed is not on the cluster.
        ExpressionError: an output lies beyond the years 1 to 9999.
    """
    found: dict[tuple[Workload, datetime], None] = {}
    for workload in workloads:
        line = feed_timeline(workload.feeds[feed], cluster)
        for output in workload.outputs:
            if output.feed == feed:
                nominals = nominal_of_output(output, workload.timeline, line, workload.timezone, instance)
                found.update(dict.fromkeys((workload, nominal) for nominal in nominals))
    return list(found)


def not_from_outside(feed: Feed, cluster: str, producers: Sequence[Workload]) -> str | None:
    """Why nothing of a feed lands on one of its clusters from outside, given who writes it there; None: it does."""
    writers = ", ".join(repr(process.name) for process in producers)
    if writers:
        return f"process {writers} writes it on cluster {cluster!r}: materialize the partition to have it written anew"
    entry = feed.on(cluster)
    if entry and entry.type == "target":
        return f"feed {feed.name!r} is replicated to cluster {cluster!r}: look at its sources"
    return None
