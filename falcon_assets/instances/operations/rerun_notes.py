"""Notes on requested reruns that wait, or cannot run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby, islice

from sqlalchemy import Connection

from falcon_assets.entities.status import EntityStatus, Status, statuses
from falcon_assets.errors import FalconError, count_of
from falcon_assets.instances.coordination.cluster_reruns import ClusterReruns
from falcon_assets.instances.coordination.cluster_snapshot import ClusterSnapshot
from falcon_assets.instances.operations.selection import Selected
from falcon_assets.instances.rules.readiness import Readiness
from falcon_assets.instances.rules.replaced_outputs import replaced_by
from falcon_assets.instances.rules.waiting import InputEvicted, InputsMissing
from falcon_assets.model.entity import Key
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.workloads import Workload

_CHECKED = 1_000
"""Inputs of this many instances of a workload are checked, the oldest first: these are the likeliest to be evicted."""


def rerun_notes(connection: Connection, again: Sequence[Selected], now: datetime) -> list[str]:
    status = statuses(connection, [one.workload.entity for one in again], now)
    notes = [note for (kind, name), one in status.items() if (note := _held(kind, name, one.status))]
    for workload, own in groupby(again, key=lambda one: one.workload):
        nominals = [one.nominal for one in islice(own, _CHECKED)]
        notes += _in_vain(connection, workload, nominals, now, status)
    return notes


def _held(kind: str, name: str, status: Status) -> str | None:
    if status is Status.SUSPENDED:
        return f"{kind} {name} is suspended: its instances run again once it is resumed (falcon entity resume {name})"
    if status is Status.SUBMITTED:
        wait = "its instances run again once it is scheduled"
        return f"{kind} {name} is not scheduled: {wait} (falcon entity schedule {name})"
    return None


def _in_vain(
    connection: Connection,
    workload: Workload,
    nominals: Sequence[datetime],
    now: datetime,
    status: Mapping[Key, EntityStatus],
) -> Iterator[str]:
    try:
        readiness = Readiness(workload)
        since = {workload.name: nominals[0]}
        nothing = ClusterReruns()
        snapshot = ClusterSnapshot(
            connection, workload.cluster, [readiness], status, (), now, nominals[-1], nothing, since
        )
        at = snapshot.situation(readiness, budget=0)
        lacking = [(one, missing) for one in nominals if (missing := InputsMissing.find(at, one, None))]
        gone = [(one, found) for one, missing in lacking if (found := InputEvicted.find(at, one, missing))]
        passed = [(one, newer) for one in nominals if (newer := replaced_by(workload, one, at.newest_written))]
    except FalconError:  # the coordinator says it of the instances
        return
    reasons = [(one, f"{found.input} was evicted on {format_instant(found.evicted)}") for one, found in gone]
    for instances in (reasons, [(one, str(newer)) for one, newer in passed]):
        if instances:
            first, why = instances[0]
            number = count_of(len(instances), "instance", "instances")
            what = f"{number} of {workload.name} on {workload.cluster}"
            yield f"{what} will not run, the first {format_instant(first)}: {why}"
