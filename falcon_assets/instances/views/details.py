"""One instance of a process or a replication: its state, and what it reads, writes and receives."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import UnknownEntityError
from falcon_assets.instances.views.explain import Explanation, explain
from falcon_assets.instances.views.explained_feed_workloads import (
    explain_compaction,
    explain_replication,
    explain_transfer,
)
from falcon_assets.instances.views.listing import instance_status
from falcon_assets.instances.views.query import InstanceInfo, InstanceQuery
from falcon_assets.model.expression import nearest
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.model.process import Process
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.planning.workloads import Workload


@dataclass(frozen=True)
class InstanceDetails:
    instance: InstanceInfo
    explanation: Explanation

    def params(self) -> dict[str, Any]:
        """The instance with the variables of its workflow or copy; secrets are hidden."""
        return {**self.instance.as_data(), "params": dict(sorted(self.explanation.properties.items()))}

    def dependencies(self) -> dict[str, Any]:
        said = self.explanation
        inputs = [
            {
                "name": one.name,
                "feed": one.feed,
                "instance": format_instant(read.instance),
                "path": read.path,
                "available": read.available,
                "optional": one.optional,
            }
            for one in said.inputs
            for read in one.instances
        ]
        for one in said.inputs:
            if one.short:
                lacks = {"instance": one.short, "path": "", "available": False, "optional": one.optional}
                inputs.append({"name": one.name, "feed": one.feed, **lacks})
        outputs = [
            {"name": one.name, "feed": one.feed, "instance": format_instant(one.instance), "path": one.path}
            for one in said.outputs
        ]
        return {**self.instance.as_data(), "inputs": inputs, "outputs": outputs}


def instance_details(
    installation: Installation, name: str, instance: datetime, cluster: str | None = None
) -> InstanceDetails:
    """Plans the instance, and checks in the stores of its feeds which data exists.

    ``instance`` may lie in the future. Raises as :func:`explanation`.
    """
    found = explanation(installation, name, instance, cluster)
    query = InstanceQuery(found.process, start=found.instance, cluster=found.cluster)
    return InstanceDetails(instance_status(installation, query).items[0], found)


def explanation(installation: Installation, name: str, instance: datetime, cluster: str | None = None) -> Explanation:
    """Plans an instance of any kind of work, and checks in the stores of its feeds which data exists.

    ``name`` is that of a process, of other work as lists call it, or of a replicated feed. ``cluster`` None: the only
    one, or the only target.

    Raises:
        UnknownEntityError: unknown name or cluster, or on several clusters and none is named.
        UnknownInstanceError: it has no such instance.
        StorageError: a store cannot be used.
    """
    entities = installation.entities
    kinds = {one.kind for one in entities.workloads_named(name) if one.name == name}
    is_replication = name not in entities.processes and (name in entities.feeds or "replication" in kinds)
    ways = {"compaction": explain_compaction, "import": explain_transfer, "export": explain_transfer}
    known = next((ways[kind] for kind in kinds if kind in ways), None)
    how = known or (explain_replication if is_replication else explain)
    return how(installation, name, instance, cluster)


@dataclass(frozen=True)
class Subject:
    """An instance; ``workload`` is None for those of feeds, ``name`` of a replication is ``FEED from CLUSTER``."""

    name: str
    cluster: str
    instance: datetime
    entity: Process | Feed
    workload: Workload | None = None

    @property
    def kind(self) -> str:
        return self.workload.kind if self.workload else "feed"

    def __str__(self) -> str:
        return f"{self.name} {format_instant(self.instance)} on {self.cluster}"


def find_subject(
    store: EntityStore, name: str, instance: datetime, cluster: str | None = None, kind: str | None = None
) -> Subject:
    """Raises UnknownEntityError (also where several clusters or kinds fit) and UnknownInstanceError.

    ``name`` is that of a process, a feed, or a replication as lists call it, which counts as a process for ``kind``.
    ``cluster`` None: the only one.
    """
    workloads = {one.cluster: one for one in store.workloads_named(name) if one.name == name} if kind != "feed" else {}
    feed = store.feeds.get(name) if kind != "process" else None
    if workloads and feed:
        raise UnknownEntityError(f"there is a feed and a process {name!r}: say which one with --type")
    if feed:
        where = _cluster(f"feed {name!r}", [one.name for one, _ in store.feed_clusters(feed)], cluster)
        feed_timeline(feed, where).require(instance, f"feed {name!r} on cluster {where!r}")
        return Subject(name, where, instance, feed)
    if not workloads:
        known = [*(store.processes if kind != "feed" else ()), *(store.feeds if kind != "process" else ())]
        raise UnknownEntityError(f"there is no {kind or 'process or feed'} {name!r}{nearest(name, known)}")
    where = _cluster(f"{name!r}", list(workloads), cluster)
    workload = workloads[where]
    workload.timeline.require(instance, f"{name!r} on cluster {where!r}")
    return Subject(name, where, instance, workload.entity, workload)


def _cluster(what: str, clusters: Collection[str], asked: str | None) -> str:
    if asked is None and len(clusters) == 1:
        return next(iter(clusters))
    if asked is None:
        raise UnknownEntityError(f"{what} is on several clusters: say which one with --cluster ({', '.join(clusters)})")
    if asked not in clusters:
        raise UnknownEntityError(f"{what} is not on cluster {asked!r}; it is on: {', '.join(clusters)}")
    return asked
