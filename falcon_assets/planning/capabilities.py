"""What executors can do: between which kinds of places they move data, and what a workload needs of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import product

from falcon_assets.model.cluster import Cluster
from falcon_assets.model.datasource import Datasource
from falcon_assets.model.executor import Capability
from falcon_assets.model.feed import Feed
from falcon_assets.model.table_catalog_url import ICEBERG
from falcon_assets.planning.compactions import CompactionWorkload
from falcon_assets.planning.transfers import ExportWorkload, ImportWorkload
from falcon_assets.planning.workloads import ProcessWorkload, Workload

FILE, HIVE, ICEBERG_TABLE = "file", "hive", "iceberg"
STORES = (FILE, HIVE, ICEBERG_TABLE)
"""Kinds of places on clusters; all others are types of datasources."""


def place_kind(feed: Feed, cluster: Cluster) -> str:
    """The kind of place that the feed has on the cluster."""
    if feed.table_on(cluster.name) is None:
        return FILE
    return table_kind(cluster)


def table_kind(cluster: Cluster) -> str:
    """The kind of place that tables of the cluster are."""
    registry = cluster.interfaces.registry
    return ICEBERG_TABLE if registry and registry.endpoint.startswith(ICEBERG) else HIVE


def possible_capabilities(read: Collection[str], written: Collection[str]) -> tuple[Capability, ...]:
    """All pairs of these kinds with a cluster on one side: data goes from one datasource to another through a feed."""
    pairs = product(sorted(read), sorted(written))
    return tuple((source, target) for source, target in pairs if source in STORES or target in STORES)


def needs_of(
    workload: Workload, clusters: Mapping[str, Cluster], datasources: Mapping[str, Datasource]
) -> frozenset[Capability] | None:
    """What its executor must be able to do; None: it uses none.

    ``clusters`` are those of all colos, by name, as ``datasources`` are.
    """
    if isinstance(workload, CompactionWorkload):
        return None
    if isinstance(workload, ProcessWorkload) and workload.entity.workflow.spark == "none":
        return None
    reads, writes = clusters[workload.reads_on], clusters[workload.cluster]
    sources = {place_kind(workload.feeds[one.feed], reads) for one in workload.inputs}
    targets = {place_kind(workload.feeds[one.feed], writes) for one in workload.outputs}
    if isinstance(workload, ImportWorkload | ExportWorkload) and workload.datasource in datasources:
        (sources if isinstance(workload, ImportWorkload) else targets).add(datasources[workload.datasource].type)
    return frozenset(product(sources, targets))
