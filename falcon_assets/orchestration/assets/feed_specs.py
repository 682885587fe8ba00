"""Feeds as Dagster asset specs: what the UI shows of a feed on a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.orchestration.mapping import asset_keys as names
from falcon_assets.orchestration.mapping.partitions import partitions_of
from falcon_assets.planning.time.timeline import Timeline


def feed_spec(
    feed: Feed,
    cluster: Cluster,
    timeline: Timeline,
    *,
    deps: Sequence[dg.AssetDep] = (),
    kinds: Sequence[str] = (),
    tags: Mapping[str, str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    skippable: bool = False,
) -> dg.AssetSpec:
    """The asset of ``feed`` on ``cluster``, partitioned by ``timeline``, with tags and metadata of its producer."""
    return dg.AssetSpec(
        key=names.asset_key(cluster.name, feed.name),
        description=feed.description or None,
        group_name=names.group_name(feed.groups),
        tags=names.tags({**(tags or {}), **feed.tags, "falcon/cluster": cluster.name, "falcon/colo": cluster.colo}),
        owners=names.owners(feed.acl),
        kinds={cluster.name, feed.format.lower(), *kinds},  # three at most, and the graph shows them on the node
        partitions_def=partitions_of(timeline),
        metadata={**_metadata(feed, cluster), **(metadata or {})},
        deps=deps,
        skippable=skippable,
    )


def _metadata(feed: Feed, cluster: Cluster) -> dict[str, Any]:
    """The definition as people wrote it; whatever is not declared is left out."""
    locations, table = feed.locations_on(cluster.name), feed.table_on(cluster.name)
    sla, entry = feed.sla_on(cluster.name), next(one for one in feed.clusters if one.name == cluster.name)
    retention = f"{entry.retention.action} after {entry.retention.limit}" if entry.retention else None
    shown = {
        "falcon/frequency": feed.frequency,
        "falcon/timezone": feed.timezone,
        "falcon/path_timezone": entry.path_timezone or feed.path_timezone,
        "falcon/validity_start": entry.validity.start.isoformat(),
        "falcon/validity_end": entry.validity.end.isoformat(),
        "falcon/location": locations.data,
        "falcon/table": table.uri if table else None,
        "falcon/availability_flag": feed.availability_flag,
        "falcon/late_cut_off": feed.late_arrival.cut_off if feed.late_arrival else None,
        "falcon/sla": f"low {sla.low}, high {sla.high}" if sla else None,
        "falcon/retention": retention,
        "falcon/replication": entry.type,
        "falcon/partitions": ", ".join(feed.partitions) or None,
        "falcon/groups": ", ".join(feed.groups) or None,
        "falcon/schema": feed.schema_,
        **{f"tag/{key}": value for key, value in feed.tags.items()},
        **{f"property/{key}": value for key, value in feed.properties.items()},
    }
    return {key: str(value) for key, value in shown.items() if value is not None}
