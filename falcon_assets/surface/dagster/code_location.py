"""The whole code location: Dagster definitions of all entities."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.features.replication.run import Copying
from falcon_assets.history.dagster_internals.asset_jobs import AssetJob
from falcon_assets.history.mapping.partition_mappings import rollup_deps
from falcon_assets.history.mapping.partitions import AssetPartitions
from falcon_assets.history.platform.setup_fingerprint import SETUP, setup_fingerprint
from falcon_assets.hooks import hooks
from falcon_assets.instances.assets import feed_spec
from falcon_assets.instances.spark_resource import spark_resources
from falcon_assets.operations.page_links import page_path
from falcon_assets.planning.dagster_names import op_name
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.settings import Settings
from falcon_assets.surface.dagster.asset_options import AssetOptions
from falcon_assets.surface.dagster.sensors import sensors
from falcon_assets.surface.dagster.workload_assets import WorkloadAssets, by_job, job_of

_OTHER_FRAMES = 1000


def definitions_of(
    store: EntityStore,
    settings: Settings,
    copying: Copying | None = None,
    options: AssetOptions = AssetOptions(),  # noqa: B008 - it cannot be changed
) -> dg.Definitions:
    """Returns assets with checks, jobs, sensors, schedules and resources for the entities of ``store``.

    The runs of its jobs execute in one process, so that all their steps share one warm Spark session. The jobs declare
    this themselves: other jobs of the code location keep their executor.
    """
    _allow_chains(len(store.workloads))
    building = WorkloadAssets(store, settings, options.op, copying)
    all_assets: list[dg.AssetsDefinition | dg.AssetSpec] = [
        *_external_feeds(store, building.partitions),
        *map(building.build, by_job(store.workloads)),
    ]
    if settings.front:
        all_assets = [*map(partial(_with_page, store, settings.front), all_assets)]
    resources = spark_resources(store.clusters.values(), settings.home, settings.environ)
    store, assets = options.applied(store, all_assets, resources)
    jobs = {one.job_name: job_of(one) for one in store.active_workloads}
    own = location_of(store, settings, assets, [*jobs.values()])
    watching = dg.Definitions(
        sensors=list(sensors(store, settings, jobs, building.recording)), metadata={SETUP: setup_fingerprint(settings)}
    )
    return dg.Definitions.merge(own, watching, *hooks().definitions(store=store, settings=settings))


def location_of(
    store: EntityStore,
    settings: Settings,
    assets: Iterable[dg.AssetsDefinition | dg.AssetSpec],
    jobs: Sequence[AssetJob],
) -> dg.Definitions:
    """Returns what executes these jobs."""
    resources = spark_resources(store.clusters.values(), settings.home, settings.environ)
    return dg.Definitions(assets=[*map(_apart, assets)], jobs=jobs, resources=resources)


def _allow_chains(workloads: int) -> None:
    """Dagster follows a chain of ops by recursion, in an order that nobody knows before."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _OTHER_FRAMES + workloads))


def _apart(asset: dg.AssetsDefinition | dg.AssetSpec) -> dg.AssetsDefinition:
    """Dagster makes one definition of all that land, and takes all of them into each job that reads one."""
    return dg.AssetsDefinition(specs=[asset]) if isinstance(asset, dg.AssetSpec) else asset


def _with_page(
    store: EntityStore, front: str, asset: dg.AssetsDefinition | dg.AssetSpec
) -> dg.AssetsDefinition | dg.AssetSpec:
    """With the links to the pages of their instances."""

    def linked(spec: dg.AssetSpec) -> dg.AssetSpec:
        cluster, name = spec.key.path
        kind = "feed" if name in store.feeds else None
        link = page_path("instances/list", {"name": name, "cluster": cluster, "type": kind}.items())
        return spec.merge_attributes(metadata={"falcon/page": dg.MetadataValue.url(front + link)})

    return linked(asset) if isinstance(asset, dg.AssetSpec) else asset.map_asset_specs(linked)


def _external_feeds(store: EntityStore, partitions: AssetPartitions) -> Iterator[dg.AssetSpec]:
    for feed in store.feeds.values():
        for cluster, _ in store.feed_clusters(feed):
            if not (store.producers(feed.name, cluster.name) or store.replications_to(feed.name, cluster.name)):
                line = feed_timeline(feed, cluster.name)
                if feed.rollup:
                    yield feed_spec(feed, cluster, line, deps=[*rollup_deps(feed, cluster.name, partitions)])
                    continue
                collector = {"falcon/collector": op_name(cluster.name, "collector")}
                yield feed_spec(feed, cluster, line, metadata=collector)
