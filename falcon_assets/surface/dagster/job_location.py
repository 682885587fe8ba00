"""What the process of a run needs of the code location: its job, the assets of that, and what they read.

Thousands of entities take seconds to define, and each run would wait for them.
"""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg

from falcon_assets.catalog.store import EntityStore, load_entities
from falcon_assets.history.mapping.partitions import AssetPartitions
from falcon_assets.history.platform.job_of_run import needed_job
from falcon_assets.instances.assets import feed_spec
from falcon_assets.planning.dagster_names import identifier
from falcon_assets.planning.workloads import Workload
from falcon_assets.settings import Settings, load_settings
from falcon_assets.surface.dagster.code_location import location_of
from falcon_assets.surface.dagster.workload_assets import WorkloadAssets, job_of


def definitions_of_this_run() -> dg.Definitions | None:
    """None: this process is not that of a run of a workload's own job, and needs all definitions."""
    if (job := needed_job()) is None:
        return None
    settings = load_settings()
    store = load_entities(settings.entity_defs, home=settings.home).in_colo(settings.colo)
    return definitions_of_job(store, settings, job)


def definitions_of_job(store: EntityStore, settings: Settings, job: str) -> dg.Definitions | None:
    """Returns what Dagster needs to execute the job; parses no other entities. None: it is not that of a workload."""
    workloads = [*_workloads(store, job)]
    if not workloads:
        return None
    building = WorkloadAssets(store, settings)
    made = building.build(workloads)
    read = sorted({dep.asset_key for spec in made.specs for dep in spec.deps} - made.keys)
    there = [_read(store, building.partitions, key) for key in read if key.path[1] in store.feeds]
    return location_of(store, settings, [made, *there], [job_of(workloads[0])])


def _workloads(store: EntityStore, job: str) -> Iterator[Workload]:
    known = store.relations
    for name in store.processes:
        if identifier(name) in job:
            yield from (one for one in store.workloads_of(name) if one.job_name == job)
    for name in sorted(known.replicated | known.compacted | known.imported | known.exported):
        if identifier(name) in job:
            copying = (one for cluster in store.clusters for one in store.replications_to(name, cluster))
            own = (*store.imports_of(name), *copying, *store.compactions_of(name), *store.exports_of(name))
            yield from (one for one in own if one.job_name == job)


def _read(store: EntityStore, partitions: AssetPartitions, key: dg.AssetKey) -> dg.AssetSpec:
    cluster, feed = store.everywhere[key.path[0]], store.feeds[key.path[1]]
    return feed_spec(feed, cluster, partitions.of_feed(feed, cluster.name).partitions)
