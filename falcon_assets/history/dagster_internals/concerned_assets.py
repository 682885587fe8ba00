"""The assets that a mutation is about: those it names, those of the runs and backfills it names, or those of a job."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import dagster as dg
from dagster._core.definitions.selector import JobSelector  # how a job is named in a workspace

from falcon_assets.history.dagster_internals.permissions import RequestContext

_RUNS = ("runId", "runIds", "parentRunId")
_BACKFILLS = ("backfillId", "parentRunId")


def concerned_assets(context: RequestContext, arguments: Mapping[str, Any]) -> set[tuple[str, ...]]:
    """Returns their keys; of a run or backfill that does not exist there are none."""
    return {tuple(key.path) for key in _of(context, arguments)}


def _of(context: RequestContext, value: Any) -> Iterator[dg.AssetKey]:
    if isinstance(value, Mapping):
        if "path" in value and isinstance(value["path"], list):
            yield dg.AssetKey(value["path"])
        if "repositoryLocationName" in value and not value.get("assetSelection"):
            yield from _of_job(context, value)
        for name, one in value.items():
            if name in _RUNS:
                yield from _of_runs(context.instance, one)
            if name in _BACKFILLS:
                yield from _of_backfill(context, one)
            yield from _of(context, one)
    elif isinstance(value, Collection) and not isinstance(value, str):
        for one in value:
            yield from _of(context, one)


def _of_job(context: RequestContext, selector: Mapping[str, Any]) -> Iterator[dg.AssetKey]:
    name = selector.get("pipelineName") or selector.get("jobName")
    if name and selector.get("repositoryName") and context.has_code_location(selector["repositoryLocationName"]):
        job = JobSelector(
            location_name=selector["repositoryLocationName"],
            repository_name=selector["repositoryName"],
            job_name=name,
        )
        if context.has_job(job):
            yield from context.get_asset_keys_in_job(job)


def _of_runs(instance: dg.DagsterInstance, ids: str | list[str]) -> Iterator[dg.AssetKey]:
    for one in [ids] if isinstance(ids, str) else ids:
        run = instance.get_run_by_id(one)
        yield from (run.asset_selection or ()) if run else ()


def _of_backfill(context: RequestContext, backfill_id: str) -> Iterator[dg.AssetKey]:
    backfill = context.instance.get_backfill(backfill_id)
    if backfill is not None:
        yield from backfill.asset_selection or ()
