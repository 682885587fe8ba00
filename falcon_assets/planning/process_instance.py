"""Process instances: everything that one run of a workflow reads, writes and receives."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from falcon_assets.base.texts import STARS, without_credentials
from falcon_assets.errors import ExpressionError, QueryError, UnknownEntityError, WorkflowError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.model.process import Input, MembersRead, Output, Process
from falcon_assets.model.secret_values import is_secret
from falcon_assets.model.spark_settings import is_of_application
from falcon_assets.planning.expressions import evaluate_time
from falcon_assets.planning.input_windows import Available, input_instances, latest_instances
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.interpolate import Watermark, interpolate
from falcon_assets.planning.rollups import leaves_of
from falcon_assets.planning.timeline import feed_timeline, process_timeline


@dataclass(frozen=True)
class InputPlan:
    """One input, instances oldest first, available or not; ``short``: the window that lacks available instances.

    ``members`` tells those in ``member_names`` apart, the feeds with the data of a roll-up.
    """

    name: str
    feed: Feed
    instances: tuple[datetime, ...]
    paths: tuple[str, ...]
    optional: bool
    partition: str | None
    short: str = ""
    members: MembersRead | None = None
    member_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class OutputPlan:
    name: str
    feed: Feed
    instance: datetime
    path: str


@dataclass(frozen=True)
class ProcessInstance:
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
    watermark: Watermark | None = None,
) -> ProcessInstance:
    """Plans the instance ``nominal``; ``available`` is called for ``latest`` and ``future`` only.

    Raises:
        UnknownInstanceError: ``nominal`` is no instance of the process there, or an output falls outside its feed's
            validity.
        UnknownEntityError: the process or one of its feeds is not on the cluster, or a feed is not defined.
        ExpressionError: an expression or a hole has no value here.
    """
    process_timeline(process, cluster.name).require(nominal, f"process {process.name!r} on cluster {cluster.name!r}")
    planner = _Planner(process, cluster, feeds, nominal, user, available, watermark)
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


@dataclass(frozen=True)
class _Planner:
    process: Process
    cluster: Cluster
    feeds: Mapping[str, Feed]
    nominal: datetime
    user: str
    available: Callable[[Feed], Available]
    watermark: Watermark | None

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
        own = {name: self.fill(value, known, self.watermark) for name, value in self.process.properties.items()}
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
            members=declared.members,
            member_names=tuple(one.name for one in leaves_of(feed, self.feeds)) if declared.members else (),
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

    def fill(self, text: str, values: Mapping[str, str], watermark: Watermark | None = None) -> str:
        return interpolate(text, values, self.nominal, self.process.timezone, self.user, watermark)


AskedProperties: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values, by name; values may hold ``${...}``, as declared ones, or be ``{env: NAME}``."""

_REFERENCE = re.compile(r"\{ *env: *([A-Za-z_][A-Za-z0-9_]*) *\}")
_OURS = ("FALCON_", "DAGSTER_")
"""Variables that open the database must not reach workflows."""


def with_properties(process: Process, asked: AskedProperties) -> Process:
    return process.model_copy(update={"properties": {**process.properties, **dict(asked)}}) if asked else process


def said_properties(asked: AskedProperties) -> str:
    return ", ".join(f"{name}={_shown(name, value)}" for name, value in asked)


def looked_up(asked: AskedProperties, environ: Mapping[str, str]) -> AskedProperties:
    """Raises WorkflowError where a variable is not set, or a secret was requested as text, which is not kept."""
    return tuple((name, _looked_up(name, value, environ)) for name, value in asked)


def _looked_up(name: str, value: str, environ: Mapping[str, str]) -> str:
    variable = _REFERENCE.fullmatch(value)
    if variable is None:
        if _holds_secret(name, value) or STARS in value:
            raise WorkflowError(f"property {name} was asked for with a secret as text, which is not kept: {_how(name)}")
        return value
    if variable[1] not in environ:
        raise WorkflowError(
            f"property {name} was asked for as {value}, and {variable[1]} is not set where the run was started: set it "
            "for Dagster's daemon and code location, or for falcon run, and run the instance again"
        )
    return environ[variable[1]]


def starred(asked: AskedProperties) -> AskedProperties:
    return tuple((name, _shown(name, value)) for name, value in asked)


def _shown(name: str, value: str) -> str:
    if _REFERENCE.fullmatch(value):
        return value
    return STARS if is_secret(name) else without_credentials(value)


def _holds_secret(name: str, value: str) -> bool:
    return _shown(name, value) != value or (is_secret(name) and value == STARS)


def _how(name: str) -> str:
    return f"ask with --properties '{name}={{env: NAME}}', and set the variable NAME where the instance runs"


def require_usable(process: Process, cluster: Cluster, asked: AskedProperties) -> None:
    """Raises QueryError for built-in names, holes without a value, secrets as text, and settings of Spark's start."""
    known = dict.fromkeys((*cluster.variables, *BUILT_IN), "")
    entry = process.on(cluster.name)
    for name, value in asked:
        if name in BUILT_IN:
            raise QueryError(f"property {name!r} identifies the instance: it cannot be overridden")
        if process.workflow.spark == "session" and name.startswith("spark.") and is_of_application(name):
            raise QueryError(
                f"Spark reads {name} when it starts, and {process.name} runs in a session that has started already"
            )
        if _holds_secret(name, value):
            raise QueryError(f"property {name} holds a secret, and what is asked for is kept: {_how(name)}")
        variable = _REFERENCE.fullmatch(value)
        if variable and variable[1].upper().startswith(_OURS):
            raise QueryError(f"property {name}: {variable[1]} is for falcon and Dagster only: name another variable")
        try:
            if entry is not None:
                at = entry.validity.start
                interpolate(value, known, at, process.timezone, "", lambda feed, at=at: at)  # type: ignore[misc]
        except ExpressionError as error:
            raise QueryError(f"property {name}={value}: {error}") from None
