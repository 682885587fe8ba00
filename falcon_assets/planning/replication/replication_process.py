"""Replications as coordinators see them: processes that read a feed on its source and write it on its target."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import cast

from falcon_assets.model.base import EntityName
from falcon_assets.model.expression import InstanceExpression
from falcon_assets.model.feed import Feed, FeedCluster
from falcon_assets.model.frequency import Frequency, TimeUnit
from falcon_assets.model.process import Input, LateInput, LateProcess, Output, Process, ProcessCluster, Retry
from falcon_assets.model.shared import Validity
from falcon_assets.model.workflow import Workflow
from falcon_assets.planning.replication.options import replication_options
from falcon_assets.planning.replication.targets import common_timeline

_HERE = InstanceExpression.parse("now(0,0)")
LATE_POLICY = LateProcess(policy="exp-backoff", delay=Frequency(3, TimeUnit.HOURS), inputs=(LateInput(input="source"),))
"""When late changes of a source are looked for (source: Falcon's defaults of feed.late.policy and frequency)."""


class Replication(Process):
    """What one source brings to one target: a process that waits, runs, is retried and is late like any other.

    It is made by :func:`replications_to` only, has no workflow, and its name has spaces, which no other has.
    """

    source: EntityName
    """The cluster that is read."""
    delay: Frequency | None = None
    """How long after the nominal time an instance is due."""

    @property
    def feed(self) -> str:
        """The name of the feed."""
        return self.inputs[0].feed

    @property
    def target(self) -> str:
        """The cluster that is written."""
        return self.clusters[0].name


def replications_to(feed: Feed, target: FeedCluster) -> Iterator[Replication]:
    """The replications of the feed to one of its targets, one per source that brings anything; none of tables.

    Raises:
        ExpressionError: a property that steers replication is not legal.
    """
    options = replication_options(feed.properties)
    for entry in feed.clusters:
        files = feed.table_on(entry.name) is None and feed.table_on(target.name) is None
        timeline = common_timeline(feed, entry.name, target.name) if entry.type == "source" and files else None
        if timeline is None:
            continue
        # Not validated: the name is none that people may give, and everything in it was validated as part of the feed.
        yield Replication.model_construct(
            kind="process",
            name=replication_name(feed.name, entry.name),
            description=f"{feed.name} from {entry.name} to {target.name}",
            tags=feed.tags,
            pipelines=(replication_pipeline(target.name),),
            clusters=(ProcessCluster(name=target.name, validity=Validity(start=timeline.start, end=timeline.end)),),
            parallel=options.parallel,
            order=options.order,
            timeout=options.timeout,
            frequency=feed.frequency,
            timezone=feed.timezone,
            inputs=(Input(name="source", feed=feed.name, start=_HERE, end=_HERE),),
            outputs=(Output(name="target", feed=feed.name, instance=_HERE),),
            retry=Retry(),
            late_process=LATE_POLICY if feed.late_arrival else None,
            workflow=cast(Workflow, None),  # it copies
            acl=feed.acl,
            schedule=feed.schedule,
            source=entry.name,
            delay=_longer(entry.delay, target.delay),
        )


def replication_name(feed: str, source: str) -> str:
    """What the replications of a feed from a source are called, on every target."""
    return f"{feed} from {source}"


def replication_pipeline(target: str) -> str:
    """What the replications to a cluster are coordinated as; no pipeline that people name has a dot."""
    return f"{target}.replication"


def input_cluster(process: Process, cluster: str) -> str:
    """Where the inputs of the instances of a process on a cluster are read."""
    return process.source if isinstance(process, Replication) else cluster


def delay_of(process: Process) -> timedelta:
    """How long after its nominal time an instance is due."""
    delay = process.delay if isinstance(process, Replication) else None
    return delay.length if delay else timedelta()


def _longer(one: Frequency | None, other: Frequency | None) -> Frequency | None:
    return max((delay for delay in (one, other) if delay), key=lambda delay: delay.length, default=None)
