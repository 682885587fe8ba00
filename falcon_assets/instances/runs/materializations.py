"""Events of a published instance in Dagster's history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime

import dagster as dg

from falcon_assets.history.events.columns import DataCaptured
from falcon_assets.history.events.event_log import materialization
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.history.events.process_instances import InstanceChanged, WorkDone
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.instances.runs.environment import run_environment
from falcon_assets.instances.runs.instance_run import InstanceResult
from falcon_assets.planning.data_usage import FeedInstance
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.settings import os_user


def materializations(
    result: InstanceResult,
    process: str,
    cluster: str,
    partition: str,
    at: datetime,
    definition: int | None,
    earlier: Mapping[FeedInstance, str | None] | None = None,
    effect: dg.AssetKey | None = None,
) -> Iterator[dg.AssetMaterialization | dg.AssetCheckEvaluation]:
    """One event per output (without any, one for the ``effect``), on its own partition, with all that decisions need.

    The last records the success of the process instance. Before it are those of ``earlier`` snapshot instances with the
    same data, with their partitions.
    """
    nominal, inputs, late = result.nominal, result.inputs, result.late
    state = InstanceState.SUCCEEDED
    succeeded = InstanceChanged(process, cluster, nominal, state, at, inputs=inputs, late=late, definition=definition)
    work = WorkDone(round(result.seconds, 3), result.application_id)
    used = result.usage
    captured = DataCaptured(used.capture, tuple(used.warnings))
    published = [
        FeedInstanceAvailable(
            cluster,
            output.plan.feed.name,
            output.plan.instance,
            output.version.version,
            at,
            output.version.bytes,
            output.records,
            output.version.files,
            process=process,
            nominal=nominal,
            inputs=inputs,
            late=late,
            path=output.place,
            definition=definition,
            kept_versions=output.kept,
            made_by=os_user(),
            environment=run_environment(),
            undeclared=result.undeclared,
            places=used.recorded_places,
            writes=used.recorded_writes,
            capture=captured.capture,
            warnings=captured.capture_warnings,
            columns=used.columns.get(output.plan.name),
        )
        for output in result.outputs
    ]
    for one in published:
        for (feed, instance), own in (earlier or {}).items():
            if feed == one.feed:
                same = replace(one, instance=instance)
                yield materialization(names.asset_key(cluster, feed), own or partition, same)
    keys = [names.asset_key(cluster, one.feed) for one in published] or [effect or names.asset_key(cluster, process)]
    found = [[one.inspected.record(one.version.version, at)] if one.inspected else [] for one in result.outputs]
    for key, one, more in zip(keys, published[:-1], found, strict=False):
        yield materialization(key, partition, one, *more, captured, work)
    for output in result.outputs:
        if output.inspected is not None:
            yield from output.inspected.evaluations(output.version.version)
    yield materialization(
        keys[-1], partition, *published[-1:], *(found or [[]])[-1], succeeded, *result.facts, captured, work
    )
