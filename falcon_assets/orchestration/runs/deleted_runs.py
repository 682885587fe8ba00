"""Runs that somebody deleted in Dagster: what they had in flight is free again."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from falcon_assets.events.process_instances import InstanceChanged
from falcon_assets.ledger import queries
from falcon_assets.orchestration.dagster_internals.tables import RUNS
from falcon_assets.orchestration.mapping import asset_keys as names
from falcon_assets.orchestration.mapping.partitions import key_of
from falcon_assets.orchestration.platform.open_ledger import Ledger
from falcon_assets.planning.instances.instance_record import InstanceState
from falcon_assets.planning.workloads.workload import Workload


def free_instances_of_deleted_runs(ledger: Ledger, now: datetime, workloads: Iterable[Workload]) -> int:
    """Records that instances in flight wait again whose run is not there any more; how many.

    Deleting a run takes its events away and adds none, so nothing else would end them. The ledger must be up to date;
    it has the change when it is brought up to date the next time.
    """
    known = {(one.name, one.cluster): one for one in workloads}
    with ledger.engine.connect() as connection:
        lost = queries.in_flight_without_run(connection, {name for name, _ in known}, RUNS)
    for (name, cluster), nominals in lost.items():
        workload = known.get((name, cluster))
        if workload is None:
            continue
        partitions = workload.partitions
        key = names.workload_keys(workload)[0]
        for nominal in nominals:
            partition = key_of(partitions.timeline, partitions.partition_of(nominal))
            waits, reason = InstanceState.WAITING, "its run was deleted"
            changed = InstanceChanged(name, cluster, nominal, waits, now, reason)
            ledger.instance.report_runless_asset_event(changed.event(key, partition))
    return sum(map(len, lost.values()))
