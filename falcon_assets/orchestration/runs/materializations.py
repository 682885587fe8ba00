"""What a published instance looks like in Dagster's history."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import dagster as dg

from falcon_assets.events import metadata as meta
from falcon_assets.ledger.reruns import cause_of
from falcon_assets.model.instant import format_instant
from falcon_assets.model.process import Process
from falcon_assets.orchestration.mapping import asset_keys as names
from falcon_assets.orchestration.runs.instance_run import InstanceResult
from falcon_assets.planning.instances.instance_record import InstanceState
from falcon_assets.storage.cluster_store import ClusterStore


def materializations(
    result: InstanceResult, store: ClusterStore, process: Process, partition: str, at: datetime
) -> Iterator[dg.AssetMaterialization]:
    """One event per output (without any, one for the effect), on its own partition, with all that decisions need.

    The last one says that the process instance succeeded.
    """
    common: dict[str, Any] = {
        "duration_seconds": round(result.seconds, 3),
        "spark_application_id": result.application_id,
        meta.INPUTS: dg.MetadataValue.json(_inputs(result)),
        **({meta.LATE: dg.MetadataValue.json(cause_of(result.late))} if result.late else {}),
    }
    if not result.outputs:
        done = meta.state_metadata(process.name, result.nominal, InstanceState.SUCCEEDED, at)
        (key,) = names.process_keys(process, store.cluster.name)
        yield dg.AssetMaterialization(asset_key=key, partition=partition, metadata={**done, **common})
    for output in result.outputs:
        done = meta.state_metadata(process.name, result.nominal, InstanceState.SUCCEEDED, at)
        if output is not result.outputs[-1]:
            del done[meta.STATE]
        yield dg.AssetMaterialization(
            asset_key=names.asset_key(store.cluster.name, output.plan.feed.name),
            partition=partition,
            metadata={
                **done,
                "instance": format_instant(output.plan.instance),
                "path": dg.MetadataValue.path(output.place),
                "data_version": output.version.version,
                "dagster/row_count": output.records,
                "records": output.records,
                "bytes": output.version.bytes,
                "files": output.version.files,
                **common,
            },
            tags={meta.DATA_VERSION_TAG: output.version.version},
        )


def _inputs(result: InstanceResult) -> dict[str, Any]:
    """Per input what was read, and what of an optional input was not there (without a version), oldest first."""
    return {
        name: [
            {
                "feed": one.feed,
                "instance": format_instant(one.instance),
                "path": one.path,
                "version": one.version.version if one.version else None,
            }
            for one in consumed
        ]
        for name, consumed in result.inputs.items()
    }
