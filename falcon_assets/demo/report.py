"""What was produced, read back from Dagster's history."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.demo.landing import Landed
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.orchestration import names
from falcon_assets.orchestration.materialization import DATA_VERSION_TAG
from falcon_assets.storage.cluster_store import ClusterStore

_PAGE = 1000


@dataclass(frozen=True)
class FeedReport:
    """The instances of a feed on a cluster."""

    feed: str
    cluster: str
    instances: int
    records: int
    bytes: int


def is_recorded(instance: dg.DagsterInstance, cluster: Cluster, feed: Feed) -> Callable[[datetime], bool]:
    """Tells of an instance of the feed whether Dagster's history has it; the history is read once, now."""
    recorded = instance.get_materialized_partitions(names.asset_key(cluster.name, feed.name))
    return lambda moment: format_instant(moment) in recorded


def report_landing(instance: dg.DagsterInstance, landed: Landed, files: ClusterStore) -> None:
    """Records an instance that landed from outside as a materialization of its external asset."""
    instance.report_runless_asset_event(
        dg.AssetMaterialization(
            asset_key=names.asset_key(landed.cluster.name, landed.feed.name),
            partition=format_instant(landed.instance),
            metadata={
                "instance": format_instant(landed.instance),
                "path": dg.MetadataValue.path(files.path(landed.path)),
                "data_version": landed.version.version,
                "dagster/row_count": landed.records,
                "records": landed.records,
                "bytes": landed.version.bytes,
                "files": landed.version.files,
            },
            tags={DATA_VERSION_TAG: landed.version.version},
        )
    )


def feed_reports(store: EntityStore, instance: dg.DagsterInstance) -> Iterator[FeedReport]:
    """One row per feed and cluster: the latest materialization of each instance counts."""
    for feed in store.feeds.values():
        for cluster, _ in store.feed_clusters(feed):
            latest = _latest(instance, names.asset_key(cluster.name, feed.name))
            yield FeedReport(
                feed.name,
                cluster.name,
                len(latest),
                sum(_number(one, "records") for one in latest.values()),
                sum(_number(one, "bytes") for one in latest.values()),
            )


def _latest(instance: dg.DagsterInstance, key: dg.AssetKey) -> dict[str, dg.AssetMaterialization]:
    found: dict[str, dg.AssetMaterialization] = {}
    cursor: str | None = None
    while True:
        page = instance.fetch_materializations(key, limit=_PAGE, cursor=cursor)
        for record in page.records:  # newest first
            if record.asset_materialization is not None:
                found.setdefault(record.partition_key or "", record.asset_materialization)
        if not page.has_more:
            return found
        cursor = page.cursor


def _number(materialization: dg.AssetMaterialization, name: str) -> int:
    value = materialization.metadata.get(name)
    return int(value.value) if isinstance(value, dg.IntMetadataValue) and value.value is not None else 0
