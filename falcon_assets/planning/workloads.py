"""Workloads: work whose instances wait, run, are tried again and are late, and what names of workloads say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

from falcon_assets.errors import ExpressionError
from falcon_assets.model.expression import InstanceExpression
from falcon_assets.model.feed import Feed, FeedCluster
from falcon_assets.model.frequency import Frequency, TimeUnit
from falcon_assets.model.process import Input, LateInput, LateProcess, Output, Process, ProcessSla, Retry
from falcon_assets.planning.clock import later
from falcon_assets.planning.dagster_names import job_name, op_name, replication_work
from falcon_assets.planning.dependencies import own_feeds
from falcon_assets.planning.expressions import evaluate_time
from falcon_assets.planning.replication import common_timeline, replicated_timeline, replication_options
from falcon_assets.planning.timeline import Timeline, feed_timeline, process_timeline
from falcon_assets.planning.window_offsets import index_shift
from falcon_assets.planning.workload_partitions import WorkloadPartitions

LONGEST_RUN = 100
"""Most instances of one run, and of a workload that are launched at once. Their nominal times are one tag of the run,
and Dagster's index takes 2,704 bytes of a tag: of a thousand times it refuses the run, packed or not."""


def requires_valid(declared: Input, feed: Feed) -> bool:
    return feed.can_be_invalid if declared.quality is None else declared.quality == "require"


@dataclass(frozen=True, eq=False, kw_only=True)
class Workload(ABC):
    """Work done by instances on one cluster.

    Attributes:
        cluster: Where its instances run and are written.
        entity: Its declaration, whose status decides whether the workload runs.
        op_name: Shared by several workloads that fill one asset.
        outputs: Empty: it is run for its effect.
        timeout: For inputs; None: derived from the frequency.
        source_colo: The colo of :attr:`reads_on`, where that cluster is of another one; None: it is of the same.
    """

    name: str
    cluster: str
    reads_on: str
    entity: Feed | Process
    feeds: Mapping[str, Feed]
    op_name: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    delay: timedelta = timedelta()
    timeout: Frequency | None
    parallel: int
    order: Literal["FIFO", "LIFO", "LAST_ONLY"]
    retry: Retry
    late: LateProcess | None
    source_colo: str | None = None

    shares_assets: ClassVar[bool] = False
    """Whether other workloads fill some partitions of its assets, for which this one has no instance."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """``process``, ``replication``, ``compaction``, ``import`` or ``export``."""

    @property
    @abstractmethod
    def pipelines(self) -> tuple[str, ...]:
        """The coordinator of the first launches it."""

    @property
    def queue(self) -> str | None:
        """The queue that admits its instances; None: only slots limit them."""
        return None

    @property
    @abstractmethod
    def description(self) -> str: ...

    @property
    def goes_on(self) -> bool:
        """Whether an instance begins where the one before ended: it starts when that is recorded, in any run."""
        return False

    @property
    def sla(self) -> ProcessSla | None:
        """When its instances should start and end; None: nobody is warned."""
        return None

    @property
    def frequency(self) -> Frequency:
        return self.entity.frequency

    @property
    def timezone(self) -> str:
        return self.entity.timezone

    @property
    @abstractmethod
    def timeline(self) -> Timeline:
        """Raises UnknownEntityError where it or the feed of an output is not on the cluster."""

    @property
    @abstractmethod
    def partitions(self) -> WorkloadPartitions: ...

    @property
    def assets(self) -> list[str]:
        """Its output feeds; without any, an asset of its own name stands for its effect."""
        return [output.feed for output in self.outputs] or [self.name]

    @property
    def job_name(self) -> str:
        return job_name(self.op_name)

    def due(self, nominal: datetime) -> datetime:
        """When an instance may start, as far as time is concerned."""
        return later(nominal, self.delay)

    def last_due(self, now: datetime) -> datetime:
        """The time up to which, itself included, instances are due."""
        return now - self.delay

    @cached_property
    def snapshots(self) -> tuple[Output, ...]:
        return tuple(one for one in self.outputs if self.feeds[one.feed].snapshot)

    @property
    def replaces_earlier(self) -> bool:
        """Whether an instance replaces what all instances before it have written."""
        return bool(self.snapshots)

    @cached_property
    def gated(self) -> tuple[Input, ...]:
        """The inputs that wait until what they read is valid; copies are made of invalid data, too."""
        return ()

    @cached_property
    def own_feeds(self) -> frozenset[str]:
        return own_feeds(self.inputs, self.outputs) if self.reads_on == self.cluster else frozenset()


class ProcessWorkload(Workload):
    entity: Process
    kind = "process"

    def __init__(self, process: Process, cluster: str, feeds: Mapping[str, Feed]) -> None:
        super().__init__(
            name=process.name,
            cluster=cluster,
            reads_on=cluster,
            entity=process,
            feeds=feeds,
            op_name=op_name(cluster, process.name),
            inputs=process.inputs,
            outputs=process.outputs,
            timeout=process.timeout,
            parallel=process.parallel,
            order=process.order,
            retry=process.retry,
            late=process.late_process,
        )

    @property
    def sla(self) -> ProcessSla | None:
        return self.entity.sla

    @property
    def pipelines(self) -> tuple[str, ...]:
        return self.entity.pipelines

    @property
    def queue(self) -> str | None:
        return self.entity.queue

    @cached_property
    def gated(self) -> tuple[Input, ...]:
        known = (one for one in self.inputs if one.feed in self.feeds)
        return tuple(one for one in known if requires_valid(one, self.feeds[one.feed]))

    @property
    def description(self) -> str:
        reads = ", ".join(dict.fromkeys(one.feed for one in self.inputs))
        writes = ", ".join(one.feed for one in self.outputs)
        does = [f"reads {reads}"] * bool(reads) + [f"writes {writes}"] * bool(writes)
        said = f"{self.name} on {self.cluster}, every {self.frequency}: {' and '.join(does) or 'reads nothing'}"
        return f"{self.entity.description}\n\n{said}" if self.entity.description else said

    @cached_property
    def timeline(self) -> Timeline:
        """Its validity, as far as all outputs exist: no instance writes outside the validity of a feed."""
        nominal = process_timeline(self.entity, self.cluster)
        spans = [written(nominal, feed, output, self.timezone) for output, feed in self._written]
        first = max((span.start for span in spans), default=0)
        stop = min((span.stop for span in spans), default=nominal.count)
        return nominal if (first, stop) == (0, nominal.count) else nominal.cut(range(first, stop))

    @cached_property
    def partitions(self) -> WorkloadPartitions:
        nominal, timelines = self.timeline, {feed for _, feed in self._written}
        shifts = {index_shift(nominal, feed, output.instance.call, self.timezone) for output, feed in self._written}
        shift = shifts.pop() if len(shifts) == len(timelines) == 1 else None
        own = nominal if nominal.count else process_timeline(self.entity, self.cluster)  # Dagster needs a partition
        shared = shift is None and _share_outputs(nominal, self._written, self.timezone)
        at_once = 1 if shared or self.snapshots else self.parallel
        return WorkloadPartitions(nominal, own if shift is None else timelines.pop(), shift, at_once)

    def why_alone(self, root: Path) -> str:
        """Why instances are computed one by one; empty: many at once. ``root`` is the folder of the definitions."""
        inputs, outputs = ([self.feeds[one.feed] for one in all_of] for all_of in (self.inputs, self.outputs))
        if why := self.entity.workflow.why_alone(root, self.cluster, inputs, outputs):
            return why
        if self.own_feeds or self.goes_on:
            return "it reads what the instance before it writes"
        at_once, fewest = self.partitions.at_once, self.entity.workflow.fewest_together
        if at_once == 1:
            return "only one of them may run at once (parallel)"
        if at_once < fewest:
            return f"only {at_once} of them may run at once (parallel): together is faster from {fewest} on"
        return ""

    @property
    def _written(self) -> list[tuple[Output, Timeline]]:
        return [(one, feed_timeline(self.feeds[one.feed], self.cluster)) for one in self.outputs]


def written(nominal: Timeline, feed: Timeline, output: Output, timezone: str) -> range:
    """Indexes of the process instances whose ``output`` exists, by bisection: it only grows with the nominal time."""

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


_HERE = InstanceExpression.parse("now(0,0)")
LATE_POLICY = LateProcess(policy="exp-backoff", delay=Frequency(3, TimeUnit.HOURS), inputs=(LateInput(input="source"),))
"""Source: Falcon's defaults of feed.late.policy and frequency."""


class ReplicationWorkload(Workload):
    """Replication from one source to one target; its name has spaces, which names of processes cannot have."""

    entity: Feed
    kind = "replication"
    shares_assets = True

    def __init__(
        self, feed: Feed, source: FeedCluster, target: FeedCluster, timeline: Timeline, source_colo: str | None = None
    ) -> None:
        """Raises ExpressionError where a property of the feed is not legal."""
        options = replication_options(feed.properties)
        super().__init__(
            name=replication_name(feed.name, source.name),
            cluster=target.name,
            reads_on=source.name,
            entity=feed,
            feeds={feed.name: feed},
            op_name=op_name(target.name, replication_work(feed.name)),
            inputs=(Input(name="source", feed=feed.name, start=_HERE, end=_HERE),),
            outputs=(Output(name="target", feed=feed.name, instance=_HERE),),
            delay=max((entry.delay.length for entry in (source, target) if entry.delay), default=timedelta()),
            timeout=options.timeout,
            parallel=1 if feed.snapshot else options.parallel,
            order=options.order,
            retry=Retry(),
            late=LATE_POLICY if feed.late_arrival else None,
            source_colo=source_colo,
        )
        self._timeline = timeline

    @property
    def pipelines(self) -> tuple[str, ...]:
        return (replication_pipeline(self.cluster),)

    @property
    def description(self) -> str:
        return f"Copies {self.entity.name} to {self.cluster}, every {self.frequency}"

    @property
    def timeline(self) -> Timeline:
        return self._timeline

    @cached_property
    def partitions(self) -> WorkloadPartitions:
        asset = replicated_timeline(self.entity, self.cluster) or self.timeline
        shift = asset.index_at_or_before(self.timeline.start)
        return WorkloadPartitions(self.timeline, asset, shift, self.parallel)


_TO = "to "
_NOWHERE: Mapping[str, str] = {}


def compaction_name(feed: str) -> str:
    return f"{feed} compaction"


def compaction_pipeline(cluster: str) -> str:
    return f"{cluster}.compaction"


def replications_to(
    feed: Feed, target: FeedCluster, other_colos: Mapping[str, str] = _NOWHERE
) -> Iterator[ReplicationWorkload]:
    """Raises ExpressionError where a property that steers replication is not legal.

    ``other_colos`` has the colos of clusters that are in another one than the target.
    """
    for source in feed.clusters:
        timeline = common_timeline(feed, source.name, target.name) if source.type == "source" else None
        if timeline is not None:
            yield ReplicationWorkload(feed, source, target, timeline, other_colos.get(source.name))


def replication_name(feed: str, source: str) -> str:
    return f"{feed} from {source}"


def feed_of_workload(name: str) -> str:
    """Returns the feed of a workload that a feed declares; the name of a process as it is."""
    return name.partition(" ")[0]


def kind_of_workload(name: str) -> str:
    """Returns :attr:`Workload.kind` of the workload of that name."""
    feed, _, rest = name.partition(" ")
    if not rest:
        return "process"
    if name == compaction_name(feed):
        return "compaction"
    if name == import_name(feed):
        return "import"
    return "export" if rest.startswith(_TO) else "replication"


def import_name(feed: str) -> str:
    return f"{feed} import"


def export_name(feed: str, target: str) -> str:
    return f"{feed} {_TO}{target}"


def replication_pipeline(target: str) -> str:
    return f"{target}.replication"
