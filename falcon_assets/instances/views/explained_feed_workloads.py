"""One instance of a replication or compaction: where it reads and writes, and how."""

from __future__ import annotations

from datetime import datetime

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import UnknownEntityError
from falcon_assets.instances.views.explain import ExplainedInput, ExplainedInstance, ExplainedOutput, Explanation
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.audit import require_readable
from falcon_assets.operations.data_roots import roots_of
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.compactions import COMPACTED
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.replication import contributions, replication_options
from falcon_assets.planning.workloads import ReplicationWorkload, feed_of_workload
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
    settings, entities = installation.settings, installation.entities
    of_name = [one for one in entities.compactions_of(feed_of_workload(name)) if cluster in (None, one.cluster)]
    if len(of_name) != 1:
        where = ", ".join(one.cluster for one in of_name)
        known = f"is on several clusters: say which one with --cluster ({where})" if where else "is not there"
        raise UnknownEntityError(f"{name!r} {known}")
    (found,) = of_name
    require_readable(installation, "explain", [found.entity])
    found.timeline.require(instance, f"{found.name!r} on cluster {found.cluster!r}")
    feed, on = found.entity, entities.clusters[found.cluster]
    store = store_of(feed, on, settings.home, settings.environ, roots=roots_of(settings))
    path = InstancePaths(feed, on).data(instance)
    read = ExplainedInstance(instance, store.shown(path), kind_of(store).is_available(feed, path))
    declared = feed.compact.model_dump(exclude={"parallel"}) if feed.compact else {}
    properties = {key: ", ".join(said) if isinstance(said, tuple) else str(said) for key, said in declared.items()}
    outputs = (ExplainedOutput(COMPACTED, feed.name, instance, read.path),)
    inputs = (ExplainedInput(COMPACTED, feed.name, False, (read,)),)
    return Explanation(found.name, found.cluster, instance, inputs, outputs, properties)


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
