"""Ends runs whose process died: they are found by their locks, which no process holds.

Dagster itself ends a run whose worker dies while its code server lives, one that does not start in time and one that
does not stop in time (``run_monitoring`` in ``dagster.yaml``). A started run is left for ever where worker and code
server die together, and so is every run of ``falcon run`` that is killed where no daemon runs.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import dagster as dg
from sqlalchemy import Connection

from falcon_assets.history import queries
from falcon_assets.history.dagster_internals import tables
from falcon_assets.history.dagster_internals.events import Batches, record_outside_runs
from falcon_assets.history.dagster_internals.tables import RUNS
from falcon_assets.history.dagster_internals.tags import PARTITION, RANGE_END, RANGE_START
from falcon_assets.history.database import locked
from falcon_assets.history.events.process_instances import InstanceChanged
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.mapping import run_tags
from falcon_assets.history.mapping.asset_keys import workload_keys
from falcon_assets.history.mapping.partitions import instant_of_key, key_of
from falcon_assets.history.platform.interrupted_runs import cut_off
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.instances.runs.run_locks import RETAKEN_WITHIN_SECONDS, run_lock
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.planning.workloads import Workload

PATIENCE_SECONDS = 30.0
"""How long a lock must be free: a run takes it a moment after its start, and again after PostgreSQL restarts."""
_POLL_SECONDS = 0.5
_UNFINISHED = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


@dataclass(frozen=True)
class DeadRuns:
    """Finds dead runs of some workloads over several checks; keep one object for all of them.

    ``foreground`` is for ``falcon run``, which works alone: runs of an earlier one need not be started to be dead.
    ``patience`` is in seconds (real time).
    """

    workloads: Sequence[Workload]
    foreground: bool = False
    patience: float = PATIENCE_SECONDS
    _free_since: dict[str, float] = field(default_factory=dict, init=False)

    def end(self, ledger: Ledger) -> tuple[str, ...]:
        """Ends runs found dead in one check, and returns their ids; the next catch-up frees their instances."""
        suspects = self.suspects(ledger)
        now = time.monotonic()
        for gone in self._free_since.keys() - suspects.keys():
            del self._free_since[gone]  # it is over, or alive
        ended = []
        for run_id, run in suspects.items():
            seconds = now - self._free_since.setdefault(run_id, now)
            # A run of ``falcon run`` starts its op in the moment in which it starts.
            patience = min(self.patience, RETAKEN_WITHIN_SECONDS) if run_tags.FOREGROUND in run.tags else self.patience
            if seconds >= patience:
                cut_off(ledger.instance, run, f"its worker is gone: nobody held its lock for {seconds:.0f} s")
                ended.append(run_id)
        return tuple(ended)

    def end_all(self, ledger: Ledger) -> tuple[str, ...]:
        """Repeats the check until no run is suspect, little longer than ``patience``; returns the ids of the dead."""
        ended: list[str] = []
        while True:
            ledger.catch_up()
            ended += self.end(ledger)
            if not self._free_since.keys() - set(ended):
                return tuple(ended)
            # No event shows when a suspect takes its lock, or ends: checked again and again.
            time.sleep(_POLL_SECONDS)

    def suspects(self, ledger: Ledger) -> dict[str, dg.DagsterRun]:
        """Unfinished runs whose locks are free; one that has just started may be among them."""
        started = dg.DagsterRunStatus.STARTED
        asked = dg.RunsFilter(statuses=_UNFINISHED if self.foreground else [started])
        unfinished = [record.dagster_run for record in ledger.instance.get_run_records(asked)]
        runs = {run.run_id: run for run in unfinished if run.status is started or run_tags.FOREGROUND in run.tags}
        if not runs:
            return {}
        names = {workload.name for workload in self.workloads}
        with ledger.engine.connect() as connection:
            locks = {
                run_id: {run_lock(run_id, name, cluster) for name, cluster in work if name in names}
                for run_id, work in _work(connection, runs.values()).items()
            }
            alive = locked(connection, [name for of_run in locks.values() for name in of_run])
        return {run_id: runs[run_id] for run_id, of_run in locks.items() if of_run and not of_run & alive}


def _work(connection: Connection, runs: Collection[dg.DagsterRun]) -> dict[str, set[tuple[str, str]]]:
    """By run, from its tags and the instances it began: runs from the UI may have several workloads, and no tags."""
    found = queries.begun(connection, [run.run_id for run in runs])
    for run in runs:
        if run_tags.PROCESS in run.tags and run_tags.CLUSTER in run.tags:
            found.setdefault(run.run_id, set()).add((run.tags[run_tags.PROCESS], run.tags[run_tags.CLUSTER]))
    return found


def free_instances_of_deleted_runs(ledger: Ledger, now: datetime, workloads: Iterable[Workload]) -> int:
    """Records that instances of deleted runs wait again, and returns their number.

    Deleting a run removes its events and adds none, so nothing else would end them. The ledger must be up to date, and
    has the change after the next catch-up.
    """
    known = {(one.name, one.cluster): one for one in workloads}
    with ledger.engine.connect() as connection:
        lost = queries.in_flight_without_run(connection, {name for name, _ in known}, RUNS)
    with Batches(record_outside_runs(ledger.instance)) as events:
        for (name, cluster), nominals in lost.items():
            workload = known.get((name, cluster))
            if workload is None:
                continue
            partitions = workload.partitions
            key = names.workload_keys(workload)[0]
            for nominal in nominals:
                partition = key_of(partitions.timeline, partitions.partition_of(nominal))
                waits, reason = InstanceState.WAITING, "its run was deleted"
                events.add(InstanceChanged(name, cluster, nominal, waits, now, reason).event(key, partition))
    return sum(map(len, lost.values()))


UNFINISHED = [dg.DagsterRunStatus(name) for name in tables.UNFINISHED]


def unfinished_runs(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    return [one.dagster_run for one in instance.get_run_records(dg.RunsFilter(statuses=UNFINISHED))]


def asked_by_hand(runs: Iterable[dg.DagsterRun], workload: Workload) -> Mapping[datetime, str]:
    """Instances of unfinished runs started by hand, with the run; the ledger lacks those that wait."""
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
