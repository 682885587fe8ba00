"""Replications as workloads: an instance is copied from one source to one target, as soon as it is there."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import cached_property

from falcon_assets.model.expression import InstanceExpression
from falcon_assets.model.feed import Feed, FeedCluster
from falcon_assets.model.frequency import Frequency, TimeUnit
from falcon_assets.model.process import Input, LateInput, LateProcess, Output, Retry
from falcon_assets.planning.instances.dagster_names import op_name, replication_work
from falcon_assets.planning.instances.workload_partitions import WorkloadPartitions
from falcon_assets.planning.replication.options import replication_options
from falcon_assets.planning.replication.targets import common_timeline, replicated_timeline
from falcon_assets.planning.time.timeline import Timeline
from falcon_assets.planning.workloads.workload import Workload

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
