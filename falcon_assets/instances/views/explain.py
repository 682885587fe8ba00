"""One process instance: what it reads, writes and receives, and which inputs are available."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy.exc import OperationalError

from falcon_assets.base.texts import STARS, hidden
from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.definition_versions import EntityVersions, versions_of
from falcon_assets.errors import SettingsError, UnknownEntityError
from falcon_assets.instances.coordination.input_gates import input_gates
from falcon_assets.instances.rules.newer_versions import LastUse
from falcon_assets.instances.store.consumed import last_used
from falcon_assets.instances.store.known_instances import Recorded, all_recorded, recorded_on
from falcon_assets.instances.store.reruns import requests_of
from falcon_assets.instances.store.watermarks import watermarks_on
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import Instant, format_instant
from falcon_assets.model.process import Process
from falcon_assets.model.secret_values import is_secret
from falcon_assets.operations.audit import require_readable
from falcon_assets.operations.data_roots import roots_of
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Result
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.process_instance import AskedProperties, plan_process_instance, with_properties
from falcon_assets.planning.reasons import Reason
from falcon_assets.planning.workloads import ProcessWorkload, Workload
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.feed_store import StoresOf
from falcon_assets.storage.kinds.available_instances import AvailableInstances
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.snapshots import is_there, why_not_there


@dataclass(frozen=True)
class ExplainedInstance:
    """``why`` has the reason why an instance of a snapshot feed is not available."""

    instance: datetime
    path: str
    available: bool
    why: str = ""


@dataclass(frozen=True)
class ExplainedInput:
    """The instances that an input reads.

    Attributes:
        last_used: The version used last, where each is used once.
        closed: Why instances that are there are not read: valid data is required.
        short: The window of ``latest`` or ``future`` that lacks available instances; "": none does.
    """

    name: str
    feed: str
    optional: bool
    instances: tuple[ExplainedInstance, ...]
    last_used: LastUse | None = None
    short: str = ""
    closed: Mapping[datetime, Reason] = field(default_factory=dict)

    def as_data(self) -> dict[str, Any]:
        """Three lists in the same order have the instances."""
        return {
            "name": self.name,
            "feed": self.feed,
            "instances": [format_instant(one.instance) for one in self.instances],
            "paths": [one.path for one in self.instances],
            "available": [one.available for one in self.instances],
            **({"last_used": _use_data(self.last_used)} if self.last_used else {}),
            **({"short": self.short} if self.short else {}),
            **({"waits_for": [one.as_data() for one in self.closed.values()]} if self.closed else {}),
        }


def _use_data(use: LastUse) -> dict[str, Any]:
    by, at = format_instant(use.nominal), format_instant(use.used) if use.used else None
    seen = format_instant(use.seen)
    return {"version": use.version, "instance": by, "at": at, "present": use.present, "present_seen_at": seen}


@dataclass(frozen=True)
class ExplainedOutput(Result):
    name: str
    feed: str
    instance: Instant
    path: str


@dataclass(frozen=True)
class Explanation(Result):
    """A process instance, planned by the latest definition.

    Attributes:
        properties: Variables of the workflow; secrets are hidden.
        definition: The version that it runs with; None: not recorded, or the database is away.
        latest: The version explained here.
        alone: Why it is not computed by one query together with others; "": it can be; None: it is of no process.
    """

    process: str
    cluster: str
    instance: Instant
    inputs: tuple[ExplainedInput, ...]
    outputs: tuple[ExplainedOutput, ...]
    properties: Mapping[str, str]
    definition: int | None = None
    latest: int | None = None
    alone: str | None = None
    keys = ("process", "cluster", "instance", "definition", "inputs", "outputs", "properties", "alone")


def explain(installation: Installation, process: str, instance: datetime, cluster: str | None = None) -> Explanation:
    """Plans the instance and checks in the stores of its feeds which data exists; ``cluster`` None: the only one.

    Raises:
        UnknownEntityError: unknown process or cluster, or on several clusters and none is named.
        UnknownInstanceError: the process has no such instance.
        StorageError: a store cannot be used.
        DeniedError: the user may not read the process.
    """
    settings, entities = installation.settings, installation.entities
    entity = entities.process(process)
    require_readable(installation, "explain", [entity])
    where = _cluster(entities, entity, cluster)
    entity = with_properties(entity, _asked(installation, entity.name, where.name, instance))
    files = StoresOf(where, settings.home, settings.environ, roots_of(settings))
    user = entity.acl.owner if entity.acl else settings.user
    clock_of = partial(entities.landing_clock, cluster_name=where.name, clock=settings.clock)
    recorded = _recorded(installation, entities.feeds, entity, where.name)
    plan = plan_process_instance(
        entity,
        where,
        entities.feeds,
        instance,
        user=user,
        available=lambda feed: AvailableInstances(
            kind_of(files(feed)), feed, clock_of(feed), lambda one: one in recorded(feed, [one])
        ),
        watermark=watermarks_on(installation.tables_caught_up, entities.feeds, where.name, settings.now),
    )
    used = _last_used(installation, entity, where.name)
    workload = ProcessWorkload(entity, where.name, entities.feeds)
    closed = _closed(installation, workload)
    inputs = tuple(
        ExplainedInput(
            one.name,
            one.feed.name,
            one.optional,
            tuple(
                _explained(files(one.feed), one.feed, at, path, clock_of(one.feed), recorded)
                for at, path in zip(one.instances, one.paths, strict=True)
            ),
            used.get(one.name),
            one.short,
            {at: closed[one.name][at] for at in one.instances if at in closed.get(one.name, {})},
        )
        for one in plan.inputs
    )
    outputs = tuple(
        ExplainedOutput(one.name, one.feed.name, one.instance, files(one.feed).shown(one.path)) for one in plan.outputs
    )
    parameters = {key: STARS if is_secret(key) else hidden(value) for key, value in plan.properties.items()}
    versions = _versions(installation, process)
    return Explanation(
        process,
        where.name,
        plan.nominal,
        inputs,
        outputs,
        parameters,
        versions.of(plan.nominal),
        versions.present,
        workload.why_alone(entities.root),
    )


def _explained(
    store: ClusterStore, feed: Feed, instance: datetime, path: str, clock: Clock | None, recorded: Recorded
) -> ExplainedInstance:
    asked = (kind_of(store), feed, instance, path, clock)
    there = is_there(*asked)
    available = there and instance in recorded(feed, [instance])
    why = why_not_there(*asked)[1] if feed.snapshot and not there else ""
    why = "it is not recorded as complete" if there and not available else why
    return ExplainedInstance(instance, store.shown(path), available, why)


def _recorded(installation: Installation, feeds: Mapping[str, Feed], process: Process, cluster: str) -> Recorded:
    """The database is asked only where a feed needs it: the explanation works without."""
    if any(feeds[one.feed].is_taken_by_record for one in process.inputs):
        return recorded_on(installation.tables_caught_up(), cluster)
    return all_recorded


def _versions(installation: Installation, process: str) -> EntityVersions:
    """Empty without a database: the explanation does not need it."""
    key = ("process", process)
    with suppress(SettingsError, OperationalError), installation.recorded() as connection:
        return versions_of(connection, [key]).get(key, EntityVersions()) if connection else EntityVersions()
    return EntityVersions()


def _asked(installation: Installation, process: str, cluster: str, instance: datetime) -> AskedProperties:
    with suppress(SettingsError, OperationalError), installation.recorded() as connection:
        found = requests_of(connection, process, cluster, [instance]) if connection else {}
        return found[instance].properties if instance in found else ()
    return ()


def _last_used(installation: Installation, process: Process, cluster: str) -> Mapping[str, LastUse]:
    asked = {process.name: (cluster, process.inputs)}
    with suppress(SettingsError, OperationalError), installation.recorded() as connection:
        return last_used(connection, cluster, asked).get(process.name, {}) if connection else {}
    return {}


def _closed(installation: Installation, workload: Workload) -> Mapping[str, Mapping[datetime, Reason]]:
    """By input; nothing without a database."""
    asked, now = {(workload.reads_on, one.feed) for one in workload.gated}, installation.settings.now()
    with suppress(SettingsError, OperationalError), installation.recorded() as connection:
        found = input_gates(connection, installation.entities, now)(asked) if connection else {}
        return {one.name: found.get((workload.reads_on, one.feed), {}) for one in workload.gated}
    return {}


def _cluster(entities: EntityStore, process: Process, name: str | None) -> Cluster:
    clusters = {cluster.name: cluster for cluster, _ in entities.process_clusters(process)}
    if name is None and len(clusters) == 1:
        return next(iter(clusters.values()))
    if name is None:
        raise UnknownEntityError(
            f"process {process.name!r} runs on several clusters: say which one with --cluster ({', '.join(clusters)})"
        )
    if name not in clusters:
        raise UnknownEntityError(
            f"process {process.name!r} does not run on cluster {name!r}; it runs on: {', '.join(clusters)}"
        )
    return clusters[name]
