"""Process instances: everything that one run of a workflow reads, writes and is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from falcon_assets.errors import UnknownEntityError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.model.process import Input, Output, Process
from falcon_assets.planning.instances.instance_paths import InstancePaths
from falcon_assets.planning.time.timeline import feed_timeline, process_timeline
from falcon_assets.planning.windows.evaluate import evaluate_time
from falcon_assets.planning.windows.input_windows import Available, input_instances, latest_instances
from falcon_assets.planning.windows.interpolate import interpolate


@dataclass(frozen=True)
class InputPlan:
    """What one input reads.

    Attributes:
        name: Name of the input.
        feed: Its feed.
        instances: Feed instances, oldest first; whether they are available is not decided here.
        paths: Their paths, in the same order.
        optional: Whether instances that are not available are left out instead of waited for.
        partition: The sub-partition to read of each, holes filled; None = all of it.
        short: The window of ``latest`` or ``future`` for which not enough instances are available; "": it has them.
    """

    name: str
    feed: Feed
    instances: tuple[datetime, ...]
    paths: tuple[str, ...]
    optional: bool
    partition: str | None
    short: str = ""


@dataclass(frozen=True)
class OutputPlan:
    """What one output writes: one feed instance."""

    name: str
    feed: Feed
    instance: datetime
    path: str


@dataclass(frozen=True)
class ProcessInstance:
    """An instance of a process on a cluster, planned.

    Attributes:
        process: The process.
        cluster: Where it runs.
        nominal: Its nominal time, UTC.
        inputs: In the order of the declaration.
        outputs: In the order of the declaration.
        properties: Variables of the workflow: the cluster's, the process's over them, built-in variables over both.
    """

    process: Process
    cluster: Cluster
    nominal: datetime
    inputs: tuple[InputPlan, ...]
    outputs: tuple[OutputPlan, ...]
    properties: dict[str, str]


def plan_process_instance(
    process: Process,
    cluster: Cluster,
    feeds: Mapping[str, Feed],
    nominal: datetime,
    *,
    user: str,
    available: Callable[[Feed], Available],
) -> ProcessInstance:
    """Plans the instance ``nominal`` of ``process`` on ``cluster``.

    Args:
        process: The process.
        cluster: A cluster of the process.
        feeds: The feeds by name; those of its inputs and outputs at least.
        nominal: The nominal time.
        user: What ``user()`` gives.
        available: The available instances of a feed on the cluster; asked for ``latest`` and ``future`` only.

    Raises:
        UnknownInstanceError: ``nominal`` is no instance of the process there, or an output falls outside its feed's
            validity.
        UnknownEntityError: the process or one of its feeds is not on the cluster, or a feed is not defined.
        ExpressionError: an expression or a hole has no value here.
    """
    process_timeline(process, cluster.name).require(nominal, f"process {process.name!r} on cluster {cluster.name!r}")
    planner = _Planner(process, cluster, feeds, nominal, user, available)
    properties = planner.properties()
    return ProcessInstance(
        process=process,
        cluster=cluster,
        nominal=nominal,
        inputs=tuple(planner.input(declared, properties) for declared in process.inputs),
        outputs=tuple(planner.output(declared) for declared in process.outputs),
        properties=properties,
    )


BUILT_IN = ("nominalTime", "nominal_time", "process.name", "cluster.name", "cluster.colo")
"""The variables that every instance is told."""


@dataclass(frozen=True)
class _Planner:
    process: Process
    cluster: Cluster
    feeds: Mapping[str, Feed]
    nominal: datetime
    user: str
    available: Callable[[Feed], Available]

    @property
    def subject(self) -> str:
        return f"instance {format_instant(self.nominal)} of process {self.process.name!r} on {self.cluster.name!r}"

    def properties(self) -> dict[str, str]:
        nominal_text = format_instant(self.nominal)
        builtins = {
            "nominalTime": nominal_text,
            "nominal_time": nominal_text,
            "process.name": self.process.name,
            "cluster.name": self.cluster.name,
            "cluster.colo": self.cluster.colo,
        }
        known = {**self.cluster.variables, **builtins}
        own = {name: self.fill(value, known) for name, value in self.process.properties.items()}
        return {**self.cluster.variables, **own, **builtins}

    def input(self, declared: Input, properties: Mapping[str, str]) -> InputPlan:
        feed = self.feed(declared.feed)
        paths = InstancePaths(feed, self.cluster)
        instances = self.instances(declared, feed)
        short = f"{declared.start} to {declared.end}" if instances is None else ""
        instances = tuple(instances or ())
        return InputPlan(
            name=declared.name,
            feed=feed,
            instances=instances,
            paths=tuple(map(paths.data, instances)),
            optional=declared.optional,
            partition=self.fill(declared.partition, properties) if declared.partition else None,
            short=short,
        )

    def output(self, declared: Output) -> OutputPlan:
        feed = self.feed(declared.feed)
        timeline = feed_timeline(feed, self.cluster.name)
        resolved = evaluate_time(declared.instance.call, self.nominal, self.process.timezone)
        instance = timeline.instance(timeline.index_at_or_before(resolved))
        timeline.require(instance, f"output {declared.name!r} of {self.subject}: feed {feed.name!r}")
        return OutputPlan(declared.name, feed, instance, InstancePaths(feed, self.cluster).data(instance))

    def instances(self, declared: Input, feed: Feed) -> Sequence[datetime] | None:
        """None: not enough are available for the window."""
        timeline = feed_timeline(feed, self.cluster.name)
        if declared.is_of_times:
            return input_instances(declared, timeline, self.nominal, self.process.timezone)
        return latest_instances(declared, timeline, self.nominal, self.available(feed), self.process.timezone)

    def feed(self, name: str) -> Feed:
        try:
            return self.feeds[name]
        except KeyError:
            raise UnknownEntityError(
                f"process {self.process.name!r} names feed {name!r}, which is not defined"
            ) from None

    def fill(self, text: str, values: Mapping[str, str]) -> str:
        return interpolate(text, values, self.nominal, self.process.timezone, self.user)
