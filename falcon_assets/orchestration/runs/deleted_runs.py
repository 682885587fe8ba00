"""Runs that somebody deleted in Dagster: what they had in flight is free again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from falcon_assets.catalog.store import EntityStore
from falcon_assets.events.process_instances import InstanceChanged
from falcon_assets.ledger import queries
from falcon_assets.model.process import Process
from falcon_assets.orchestration.dagster_internals.tables import RUNS
from falcon_assets.orchestration.mapping import asset_keys as names
from falcon_assets.orchestration.mapping.partitions import key_of
from falcon_assets.orchestration.platform.open_ledger import Ledger
from falcon_assets.planning.instances.instance_record import InstanceState
from falcon_assets.planning.instances.process_partitions import process_partitions


def free_instances_of_deleted_runs(
    ledger: Ledger, store: EntityStore, now: datetime, processes: Sequence[Process]
) -> int:
    """Records that instances in flight wait again whose run is not there any more; how many.

    Deleting a run takes its events away and adds none, so nothing else would end them. The ledger must be up to date;
    it has the change when it is brought up to date the next time.
    """
    with ledger.engine.connect() as connection:
        lost = queries.in_flight_without_run(connection, [process.name for process in processes], RUNS)
    for (process_name, cluster), nominals in lost.items():
        process = store.coordinated_on(process_name, cluster)
        if process is None:
            continue
        partitions = process_partitions(process, cluster, store.feeds)
        key = names.process_keys(process, cluster)[0]
        for nominal in nominals:
            partition = key_of(partitions.timeline, partitions.partition_of(nominal))
            waits, reason = InstanceState.WAITING, "its run was deleted"
            changed = InstanceChanged(process.name, cluster, nominal, waits, now, reason)
            ledger.instance.report_runless_asset_event(changed.event(key, partition))
    return sum(map(len, lost.values()))
