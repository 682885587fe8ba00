"""What a published instance looks like in Dagster's history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import dagster as dg

from falcon_assets.model.instant import format_instant
from falcon_assets.orchestration import names
from falcon_assets.orchestration.instance_run import ConsumedInstance, InstanceResult
from falcon_assets.storage.cluster_store import ClusterStore

DATA_VERSION_TAG = "dagster/data_version"
"""Dagster's tag for the data version of a materialization; its constant is not public, the tag is documented."""


def materializations(result: InstanceResult, store: ClusterStore, partition: str) -> Iterator[dg.AssetMaterialization]:
    """One event per output, on its own partition, with all that later decisions need."""
    for output in result.outputs:
        yield dg.AssetMaterialization(
            asset_key=names.asset_key(store.cluster.name, output.plan.feed.name),
            partition=partition,
            metadata={
                "nominal_time": format_instant(result.nominal),
                "instance": format_instant(output.plan.instance),
                "path": dg.MetadataValue.path(store.path(output.plan.path)),
                "data_version": output.version.version,
                "dagster/row_count": output.records,
                "records": output.records,
                "bytes": output.version.bytes,
                "files": output.version.files,
                "duration_seconds": round(result.seconds, 3),
                "spark_application_id": result.application_id,
                "inputs": dg.MetadataValue.json(_inputs(result.inputs)),
            },
            tags={DATA_VERSION_TAG: output.version.version},
        )


def _inputs(inputs: Mapping[str, tuple[ConsumedInstance, ...]]) -> dict[str, Any]:
    return {
        name: [
            {"instance": format_instant(one.instance), "path": one.path, "version": one.version.version}
            for one in consumed
        ]
        for name, consumed in inputs.items()
    }
