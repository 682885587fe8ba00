"""Runs that are not over, and which instances those are for that a person started."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

import dagster as dg

from falcon_assets.orchestration.dagster_internals import tables
from falcon_assets.orchestration.dagster_internals.tags import PARTITION, RANGE_END, RANGE_START
from falcon_assets.orchestration.mapping import run_tags
from falcon_assets.orchestration.mapping.asset_keys import workload_keys
from falcon_assets.orchestration.mapping.partitions import instant_of_key
from falcon_assets.planning.workloads.workload import Workload

UNFINISHED = [dg.DagsterRunStatus(name) for name in tables.UNFINISHED]


def unfinished_runs(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    """The runs that wait, start, work or stop."""
    return [one.dagster_run for one in instance.get_run_records(dg.RunsFilter(statuses=UNFINISHED))]


def asked_by_hand(runs: Iterable[dg.DagsterRun], workload: Workload) -> Mapping[datetime, str]:
    """The instances that people started runs for, and the run; those are not in the ledger that wait yet.

    Args:
        runs: Those that are not over.
        workload: Whose instances.
    """
    keys = set(workload_keys(workload))
    found: dict[datetime, str] = {}
    for run in runs:
        is_ours = not keys.isdisjoint(run.asset_selection) if run.asset_selection else run.job_name == workload.job_name
        if not is_ours or run_tags.nominals_of(run.tags):
            continue
        one = run.tags.get(PARTITION, "")
        first, last = (instant_of_key(run.tags.get(name, one)) for name in (RANGE_START, RANGE_END))
        if first is not None and last is not None:
            partitions = workload.partitions
            nominals = map(partitions.nominal_of, partitions.timeline.between(first, last))
            found.update((nominal, run.run_id) for nominal in nominals if partitions.nominal.contains(nominal))
    return found
