"""Runs of an instance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import dagster as dg

from falcon_assets.history.dagster_internals import run_events
from falcon_assets.history.dagster_internals.tags import PARTITION, RANGE_END, RANGE_START
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.mapping import run_tags
from falcon_assets.history.mapping.partitions import instant_of_key, key_of
from falcon_assets.instances.views.query import InstanceInfo
from falcon_assets.model.instant import Instant, format_instant
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Result
from falcon_assets.planning.workloads import Workload


@dataclass(frozen=True)
class InstanceRun(Result):
    """A run of the instance.

    Attributes:
        status: Dagster's; None: the run was deleted there, and its events with it.
        instances: How many instances it ran; None: not known any more.
    """

    run: str
    attempt: int
    status: str | None
    instances: int | None = None
    first: Instant | None = None
    last: Instant | None = None

    @property
    def is_shared(self) -> bool:
        return self.instances is None or self.instances > 1


def runs_of(installation: Installation, workload: Workload, info: InstanceInfo) -> tuple[InstanceRun, ...]:
    """The known runs of the instance, the latest last; a run deleted in Dagster only where it was the last one."""
    own = format_instant(info.instance)
    tags = {run_tags.PROCESS: workload.name, run_tags.CLUSTER: workload.cluster}
    with installation.ledger.engine.connect() as connection:
        ids = run_events.runs_with_tag(connection, run_tags.NOMINAL_TIMES, own, tags)
        partition = partition_of(workload, info.instance)
        ids |= run_events.runs_that_recorded(connection, names.workload_keys(workload), partition)
    ids |= {info.run} if info.run else set()
    if not ids:
        return ()
    records = installation.instance.get_run_records(dg.RunsFilter(run_ids=sorted(ids)), ascending=True)
    found: list[InstanceRun] = []
    for record in records:
        run = record.dagster_run
        nominals = run_tags.nominals_of(run.tags)
        attempts = dict(zip(nominals, run_tags.attempts_of(run.tags), strict=False))
        attempt = attempts.get(info.instance, found[-1].attempt + 1 if found else 1)
        found.append(InstanceRun(run.run_id, attempt, run.status.value, *_carried(workload, run.tags, nominals)))
    if info.run and info.run not in {one.run for one in found}:
        found.append(InstanceRun(info.run, info.attempt, None))
    return tuple(found)


def _carried(
    workload: Workload, tags: Mapping[str, str], nominals: Sequence[datetime]
) -> tuple[int | None, datetime | None, datetime | None]:
    """Number, first and last of a run's instances: from its coordinator's tags, or from partitions chosen by hand."""
    if nominals:
        return len(nominals), nominals[0], nominals[-1]
    keys = (tags.get(RANGE_START) or tags.get(PARTITION), tags.get(RANGE_END) or tags.get(PARTITION))
    ends = [instant for key in keys if key and (instant := instant_of_key(key)) is not None]
    if len(ends) < len(keys):
        return None, None, None
    first, last = sorted(map(workload.partitions.nominal_of, ends))
    return len(workload.timeline.indexes(first, last)), first, last


def partition_of(workload: Workload, nominal: datetime) -> str:
    return key_of(workload.partitions.timeline, workload.partitions.partition_of(nominal))
