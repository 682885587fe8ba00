"""The whole code location: entities in, Dagster definitions out."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import InvalidDefinitionsError, Problem
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.process import Process
from falcon_assets.orchestration import names
from falcon_assets.orchestration.feed_specs import feed_spec
from falcon_assets.orchestration.process_assets import ProcessAssets
from falcon_assets.orchestration.resources import spark_resources
from falcon_assets.orchestration.retention_schedules import retention_definitions
from falcon_assets.orchestration.sensors import sensors
from falcon_assets.orchestration.setup_mark import SETUP, setup_mark
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.settings import Settings


def build_definitions(store: EntityStore, settings: Settings) -> dg.Definitions:
    """Assets, jobs, sensors, schedules and resources for the entities of ``store``.

    Runs execute in one process, so that all their steps share one warm Spark session.

    Raises:
        InvalidDefinitionsError: two processes would have the same op name in Dagster.
    """
    processes = store.processes.values()
    pairs = [(process, cluster) for process in processes for cluster, _ in store.process_clusters(process)]
    _require_distinct_names(store, pairs)
    builder = ProcessAssets(store, settings)
    jobs = [_job(store, process, cluster) for process, cluster in pairs]
    retention = retention_definitions(store, settings)
    return dg.Definitions(
        assets=[*_external_feeds(store), *(builder.build(process, cluster) for process, cluster in pairs)],
        jobs=[*jobs, *retention.jobs],
        schedules=retention.schedules,
        sensors=[*sensors(store, settings, {job.name: job for job in jobs}), *retention.sensors],
        resources=spark_resources(store.clusters.values(), settings),
        executor=dg.in_process_executor,
        metadata={SETUP: setup_mark(settings)},
    )


def _external_feeds(store: EntityStore) -> Iterator[dg.AssetSpec]:
    """Feeds that nobody produces: their instances land from outside."""
    for feed in store.feeds.values():
        for cluster, entry in store.feed_clusters(feed):
            if not store.producers(feed.name, cluster.name):
                yield feed_spec(feed, cluster, entry, feed_timeline(feed, cluster.name), kinds=("file",))


def _job(store: EntityStore, process: Process, cluster: Cluster) -> dg.UnresolvedAssetJobDefinition:
    """The job of one process on one cluster: what ``dagster job backfill`` and the UI's launchpad start."""
    keys = [names.asset_key(cluster.name, output.feed) for output in process.outputs]
    return dg.define_asset_job(
        name=names.job_name(cluster.name, process.name),
        selection=dg.AssetSelection.assets(*keys),
        description=process.description or None,
        tags=names.tags({"falcon/process": process.name, "falcon/cluster": cluster.name}),
    )


def _require_distinct_names(store: EntityStore, pairs: list[tuple[Process, Cluster]]) -> None:
    taken: dict[str, str] = {}
    problems = []
    for process, cluster in pairs:
        for name in (names.op_name(cluster.name, process.name), names.job_name(cluster.name, process.name)):
            other = taken.setdefault(name, process.name)
            if other != process.name:
                problems.append(
                    Problem(
                        store.position(process),
                        "name",
                        f"{process.name!r} on {cluster.name!r} and {other!r} both need the name {name!r} in Dagster, "
                        "which knows no '-': rename one of them",
                    )
                )
    if problems:
        raise InvalidDefinitionsError(problems)
