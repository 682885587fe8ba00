"""Processes without outputs as Dagster asset specs: an asset of their own stands for what they effect."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import dagster as dg

from falcon_assets.model.cluster import Cluster
from falcon_assets.model.process import Process
from falcon_assets.orchestration.mapping import asset_keys as names
from falcon_assets.orchestration.mapping.partitions import partitions_of
from falcon_assets.planning.time.timeline import Timeline


def effect_spec(
    process: Process,
    cluster: Cluster,
    timeline: Timeline,
    *,
    deps: Sequence[dg.AssetDep],
    kinds: Collection[str],
    tags: Mapping[str, str],
    metadata: Mapping[str, Any],
) -> dg.AssetSpec:
    """The asset ``cluster/process``, in the group of its pipeline, with one partition per instance of the process."""
    return dg.AssetSpec(
        key=names.asset_key(cluster.name, process.name),
        description=process.description or None,
        group_name=names.group_name(process.pipelines),
        tags=names.tags({**tags, "falcon/cluster": cluster.name, "falcon/colo": cluster.colo}),
        owners=names.owners(process.acl),
        kinds={cluster.name, *kinds},
        partitions_def=partitions_of(timeline),
        metadata={
            "falcon/frequency": str(process.frequency),
            "falcon/timezone": process.timezone,
            "falcon/validity_start": timeline.start.isoformat(),
            "falcon/validity_end": timeline.end.isoformat(),
            **metadata,
            **{f"tag/{key}": value for key, value in process.tags.items()},
        },
        deps=deps,
        skippable=True,
    )
