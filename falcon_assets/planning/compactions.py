"""The workload of feeds that are compacted."""

from __future__ import annotations

from functools import cached_property

from falcon_assets.model.expression import InstanceExpression
from falcon_assets.model.feed import Compaction, Feed
from falcon_assets.model.frequency import Frequency, TimeUnit
from falcon_assets.model.process import Input, LateInput, LateProcess, ProcessSla
from falcon_assets.planning.dagster_names import compaction_work, op_name
from falcon_assets.planning.timeline import Timeline, feed_timeline
from falcon_assets.planning.workload_partitions import WorkloadPartitions
from falcon_assets.planning.workloads import Workload, compaction_name, compaction_pipeline

_HERE = InstanceExpression.parse("now(0,0)")
COMPACTED = "instance"
"""The input of a compaction."""
_LONG_AGO = Frequency(30, TimeUnit.DAYS)
_AS_FILES_COME = LateProcess(
    policy="backoff", delay=Frequency(1, TimeUnit.MINUTES), inputs=(LateInput(input=COMPACTED),)
)


class CompactionWorkload(Workload):
    """The compaction of a feed on a cluster: it reads and replaces an instance, whose rows stay the same."""

    entity: Feed
    kind = "compaction"

    def __init__(self, feed: Feed, cluster: str, compaction: Compaction) -> None:
        super().__init__(
            name=compaction_name(feed.name),
            cluster=cluster,
            reads_on=cluster,
            entity=feed,
            feeds={feed.name: feed},
            op_name=op_name(cluster, compaction_work(feed.name)),
            inputs=(Input(name=COMPACTED, feed=feed.name, start=_HERE, end=_HERE),),
            outputs=(),  # it makes no instance: whoever waits for one waits for its writer
            timeout=None if feed.frequency.length * 6 > _LONG_AGO.length else _LONG_AGO,
            parallel=1 if feed.snapshot else compaction.parallel,
            order="FIFO",
            retry=compaction.retry,
            late=_AS_FILES_COME,
        )
        self.late_files = compaction.late_files

    @property
    def sla(self) -> ProcessSla | None:
        return self.entity.compact.sla if self.entity.compact else None

    @property
    def pipelines(self) -> tuple[str, ...]:
        return (compaction_pipeline(self.cluster),)

    @property
    def description(self) -> str:
        return f"Compacts {self.entity.name} on {self.cluster}, every {self.frequency}"

    @property
    def assets(self) -> list[str]:
        return [compaction_work(self.entity.name)]

    @cached_property
    def timeline(self) -> Timeline:
        return feed_timeline(self.entity, self.cluster)

    @cached_property
    def partitions(self) -> WorkloadPartitions:
        return WorkloadPartitions(self.timeline, self.timeline, 0, self.parallel)


def compaction_on(feed: Feed, cluster: str) -> CompactionWorkload | None:
    """None: its instances there stay as they are written; copies are what their source is."""
    entry = feed.on(cluster)
    there = feed.compact is not None and entry is not None and entry.type != "target"
    return CompactionWorkload(feed, cluster, feed.compact) if there and feed.compact else None
