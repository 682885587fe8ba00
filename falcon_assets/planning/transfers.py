"""Workloads of feeds that are imported from datasources, or exported to them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cached_property

from falcon_assets.model.expression import InstanceExpression
from falcon_assets.model.feed import Feed, FeedCluster
from falcon_assets.model.frequency import Frequency, TimeUnit
from falcon_assets.model.process import Input, LateInput, LateProcess, Output, ProcessSla
from falcon_assets.model.transfer import Export, Import
from falcon_assets.model.wall_clock import MICROSECOND
from falcon_assets.planning.clock import later
from falcon_assets.planning.dagster_names import export_work, import_work, op_name
from falcon_assets.planning.timeline import Timeline, feed_timeline
from falcon_assets.planning.workload_partitions import WorkloadPartitions
from falcon_assets.planning.workloads import LATE_POLICY, Workload, export_name, import_name, requires_valid

_HERE = InstanceExpression.parse("now(0,0)")
IMPORTED, EXPORTED = "target", "source"
"""The output of an import, and the input of an export."""
BEFORE = "before"
"""The input of an import that merges: the instance before."""
_BEFORE = InstanceExpression.parse("now(0,-1)")
_LATE = LateProcess(policy=LATE_POLICY.policy, delay=LATE_POLICY.delay, inputs=(LateInput(input=EXPORTED),))


class _Transfer(Workload):
    entity: Feed
    declared: Import | Export

    @property
    def datasource(self) -> str:
        """The name of the other end."""
        return self.declared.source.name if isinstance(self.declared, Import) else self.declared.target.name

    @property
    def sla(self) -> ProcessSla | None:
        return self.declared.sla

    @property
    def queue(self) -> str | None:
        return self.declared.queue

    @property
    def pipelines(self) -> tuple[str, ...]:
        """In a queue, its own: all work of a queue is launched by one coordinator."""
        return (transfer_pipeline(self.cluster, self.queue),)

    @cached_property
    def timeline(self) -> Timeline:
        return feed_timeline(self.entity, self.cluster)

    @cached_property
    def partitions(self) -> WorkloadPartitions:
        return WorkloadPartitions(self.timeline, self.timeline, 0, self.parallel)


class ImportWorkload(_Transfer):
    """The import of a feed on a cluster: it makes each instance from a datasource.

    An instance starts when its period is over where it is about a period: changes, messages of a topic, a query, files
    of a time; else, at its nominal time.
    """

    kind = "import"

    def __init__(self, feed: Feed, cluster: str, declared: Import) -> None:
        before = Input(name=BEFORE, feed=feed.name, start=_BEFORE, end=_BEFORE)
        super().__init__(
            name=import_name(feed.name),
            cluster=cluster,
            reads_on=cluster,
            entity=feed,
            feeds={feed.name: feed},
            op_name=op_name(cluster, import_work(feed.name)),
            inputs=(before,) if declared.key else (),
            outputs=(Output(name=IMPORTED, feed=feed.name, instance=_HERE),),
            delay=declared.delay.length if declared.delay else timedelta(),
            timeout=_patience(feed),  # of the instance before, if any
            parallel=1 if feed.snapshot or declared.goes_on else declared.at_once,
            order="FIFO" if declared.goes_on else declared.order,
            retry=declared.retry,
            late=None,
        )
        self.declared: Import = declared

    @property
    def goes_on(self) -> bool:
        return self.declared.goes_on

    @property
    def spark_writes(self) -> str | None:
        """Why Spark writes the files of an instance; None: the tasks that read the source may do that themselves."""
        feed = self.entity
        if self.declared.key:
            return "rows are merged by key"
        if feed.table_on(self.cluster):
            return "the feed is a table"
        if feed.format != "parquet":
            return f"the format is {feed.format}"
        if feed.partitions:
            return f"the feed is partitioned by {', '.join(feed.partitions)}"
        others = sorted(one for one in feed.options if one.lower() != "compression")
        return f"the feed has the option {others[0]}" if others else None

    @property
    def _has_period(self) -> bool:
        """Whether an instance is about the time up to the next one, which has to be over."""
        source = self.declared.source
        return self.declared.extract != "full" or source.query is not None or "${" in (source.path or "")

    def due(self, nominal: datetime) -> datetime:
        if not self._has_period:
            return super().due(nominal)
        return later(self.timeline.instance(self.timeline.index_at_or_before(nominal) + 1), self.delay)

    def last_due(self, now: datetime) -> datetime:
        before = super().last_due(now)
        if not self._has_period:
            return before
        begun = self.timeline.index_at_or_before(before)  # that one is not over
        return self.timeline.instance(begun) - MICROSECOND if begun >= 0 else before - MICROSECOND

    @property
    def description(self) -> str:
        source = self.declared.source
        return f"Imports {source.what} of {source.name} into {self.entity.name}, every {self.frequency}"


class ExportWorkload(_Transfer):
    """The export of a feed on a cluster to one datasource; late data is exported again."""

    kind = "export"

    def __init__(self, feed: Feed, cluster: str, declared: Export) -> None:
        target = declared.target.name
        source = Input(name=EXPORTED, feed=feed.name, start=_HERE, end=_HERE)
        super().__init__(
            name=export_name(feed.name, target),
            cluster=cluster,
            reads_on=cluster,
            entity=feed,
            feeds={feed.name: feed},
            op_name=op_name(cluster, export_work(feed.name, target)),
            inputs=(source,),
            outputs=(),
            delay=declared.delay.length if declared.delay else timedelta(),
            timeout=_patience(feed),
            parallel=1 if declared.load == "replace" else declared.at_once,
            order=declared.order,
            retry=declared.retry,
            late=_LATE if feed.late_arrival else None,
        )
        self.declared: Export = declared

    @property
    def description(self) -> str:
        return f"Exports {self.entity.name} to {self.target}, every {self.frequency}"

    @property
    def assets(self) -> list[str]:
        return [export_work(self.entity.name, self.datasource)]

    @property
    def replaces_earlier(self) -> bool:
        return self.declared.load == "replace"

    @property
    def target(self) -> str:
        """Where it is written, for people."""
        return f"{self.declared.target.table} of {self.datasource}"

    @cached_property
    def gated(self) -> tuple[Input, ...]:
        return tuple(one for one in self.inputs if requires_valid(one, self.entity))


_LONG_AGO = Frequency(30, TimeUnit.DAYS)


def _patience(feed: Feed) -> Frequency | None:
    """How long an instance waits for its input: long, as it may need people to mend the other end."""
    return None if feed.frequency.length * 6 > _LONG_AGO.length else _LONG_AGO


def import_on(feed: Feed, entry: FeedCluster) -> ImportWorkload | None:
    """None: instances there are not imported."""
    return ImportWorkload(feed, entry.name, entry.import_) if entry.import_ else None


def exports_on(feed: Feed, entry: FeedCluster) -> Iterator[ExportWorkload]:
    for declared in entry.export or ():
        yield ExportWorkload(feed, entry.name, declared)


def transfer_pipeline(cluster: str, queue: str | None) -> str:
    return f"{cluster}.transfers" if queue is None else f"{queue}.queue"
