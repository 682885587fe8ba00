"""One instance of a replication, compaction, import or export: where it reads and writes, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import UnknownEntityError
from falcon_assets.instances.views.explain import ExplainedInput, ExplainedInstance, ExplainedOutput, Explanation
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.audit import require_readable
from falcon_assets.operations.data_roots import roots_of
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.compactions import COMPACTED
from falcon_assets.planning.input_windows import input_instances
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.replication import contributions, replication_options
from falcon_assets.planning.transfers import EXPORTED, IMPORTED, ExportWorkload, ImportWorkload
from falcon_assets.planning.workloads import ReplicationWorkload, Workload, feed_of_workload
from falcon_assets.storage.feed_store import store_of
from falcon_assets.storage.kinds.kind_of import kind_of


def explain_replication(
    installation: Installation, name: str, instance: datetime, cluster: str | None = None
) -> Explanation:
    """As :func:`explain`; the properties are the clusters, the paths and the options of the copy.

    Raises:
        UnknownEntityError: there is no such replication, or there are several.
        UnknownInstanceError: it has no such instance.
        DeniedError: the user may not read the feed.
        StorageError: a store cannot be used.
    """
    settings, entities = installation.settings, installation.entities
    found = _replication(entities, name, instance, cluster)
    require_readable(installation, "explain", [found.entity])
    found.timeline.require(instance, f"replication {found.name!r} to cluster {found.cluster!r}")
    feed, source, target = found.entity, entities.everywhere[found.reads_on], entities.clusters[found.cluster]
    there = store_of(feed, source, settings.home, settings.environ, readonly=True, roots=roots_of(settings))
    here = store_of(feed, target, settings.home, settings.environ, roots=roots_of(settings))
    path, to = InstancePaths(feed, source).data(instance), InstancePaths(feed, target).data(instance)
    read = ExplainedInstance(instance, there.shown(path), kind_of(there).is_available(feed, path))
    parts = contributions(feed, target.name, entities.everywhere)
    partition = next(part.partition for part in parts if part.source == source.name)
    properties = {
        "feed": feed.name,
        "source": source.name,
        "target": target.name,
        "from": read.path,
        "to": here.shown(to),
        **({"partition": "/".join(partition)} if partition else {}),
        **replication_options(feed.properties).properties(),
    }
    return Explanation(
        found.name,
        found.cluster,
        instance,
        (ExplainedInput("source", feed.name, False, (read,)),),
        (ExplainedOutput("target", feed.name, instance, here.shown(to)),),
        properties,
    )


def explain_compaction(
    installation: Installation, name: str, instance: datetime, cluster: str | None = None
) -> Explanation:
    """As :func:`explain`; the properties are how it is compacted. Raises as :func:`explain_replication`."""
    found = _only(installation.entities.compactions_of(feed_of_workload(name)), name, cluster)
    read = _read(installation, found, instance)
    declared = found.entity.compact.model_dump(exclude={"parallel"}) if found.entity.compact else {}
    outputs = (ExplainedOutput(COMPACTED, found.entity.name, instance, read.path),)
    inputs = (ExplainedInput(COMPACTED, found.entity.name, False, (read,)),)
    return Explanation(found.name, found.cluster, instance, inputs, outputs, _said(declared))


def explain_transfer(
    installation: Installation, name: str, instance: datetime, cluster: str | None = None
) -> Explanation:
    """As :func:`explain`; the properties are how it is transferred. Raises as :func:`explain_replication`."""
    transfers = (*installation.entities.imports, *installation.entities.exports)
    found = _only([one for one in transfers if one.name == name], name, cluster)
    here = _read(installation, found, instance)
    feed, data = found.entity.name, found.declared.model_dump(by_alias=True, exclude_none=True)
    if isinstance(found, ExportWorkload):
        inputs = (ExplainedInput(EXPORTED, feed, False, (here,)),)
        return Explanation(found.name, found.cluster, instance, inputs, (), _said(data))
    outputs = (ExplainedOutput(IMPORTED, feed, instance, here.path),)
    before = [
        ExplainedInput(one.name, feed, False, tuple(_read(installation, found, of) for of in instances))
        for one in found.inputs
        for instances in [input_instances(one, found.timeline, instance, found.timezone)]
    ]
    said = _said(data)
    assert isinstance(found, ImportWorkload)
    if found.declared.source.path is None:
        said["written by"] = f"Spark, as {why}" if (why := found.spark_writes) else "the tasks that read"
    return Explanation(found.name, found.cluster, instance, tuple(before), outputs, said)


Found = TypeVar("Found", bound=Workload)


def _only(of_name: Sequence[Found], name: str, cluster: str | None) -> Found:
    fitting = [one for one in of_name if cluster in (None, one.cluster)]
    if len(fitting) != 1:
        where = ", ".join(one.cluster for one in fitting)
        known = f"is on several clusters: say which one with --cluster ({where})" if where else "is not there"
        raise UnknownEntityError(f"{name!r} {known}")
    return fitting[0]


def _read(installation: Installation, found: Workload, instance: datetime) -> ExplainedInstance:
    """The instance of its feed on its cluster."""
    settings, entities, feed = installation.settings, installation.entities, found.entity
    assert isinstance(feed, Feed)
    require_readable(installation, "explain", [feed])
    found.timeline.require(instance, f"{found.name!r} on cluster {found.cluster!r}")
    on = entities.clusters[found.cluster]
    store = store_of(feed, on, settings.home, settings.environ, roots=roots_of(settings))
    path = InstancePaths(feed, on).data(instance)
    return ExplainedInstance(instance, store.shown(path), kind_of(store).is_available(feed, path))


def _said(declared: Mapping[str, Any]) -> dict[str, str]:
    """Keys of a definition as properties, with dots between nested ones."""
    found: dict[str, str] = {}
    for key, said in declared.items():
        if isinstance(said, Mapping):
            found |= {f"{key}.{inner}": value for inner, value in _said(said).items()}
        else:
            found[key] = ", ".join(map(str, said)) if isinstance(said, tuple) else str(said)
    return found


def _replication(entities: EntityStore, name: str, instance: datetime, cluster: str | None) -> ReplicationWorkload:
    """Of several that fit, the only one that has the instance."""
    of_feeds = (one for those in entities.replications.values() for one in those)
    found = [one for one in of_feeds if name in (one.name, one.entity.name) and cluster in (None, one.cluster)]
    if not found:
        where = f"to cluster {cluster!r}" if cluster else "to a cluster"
        raise UnknownEntityError(
            f"feed {name!r} is not replicated {where}: there are no instances to run; what writes and reads its own "
            f"instances: falcon instance dependency {name} {format_instant(instance)} --type feed"
        )
    fitting = [one for one in found if one.timeline.contains(instance)] or found
    if len(fitting) > 1:
        known = ", ".join(f"{one.name!r} --cluster {one.cluster}" for one in fitting)
        raise UnknownEntityError(f"there are several replications {name!r}: say which one: {known}")
    return fitting[0]
