"""Sensors that record instances of roll-ups as soon as their members are there."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import count_of
from falcon_assets.features.rollups.passes import RollupPass
from falcon_assets.history.platform.open_ledger import open_ledger
from falcon_assets.instances.coordination.ticks import INTERVAL_SECONDS
from falcon_assets.planning.dagster_names import op_name
from falcon_assets.settings import Settings


def rollup_sensors(store: EntityStore, settings: Settings) -> Iterator[dg.SensorDefinition]:
    for cluster in store.clusters:
        if store.rollups_on(cluster):
            yield _sensor(RollupPass(store, cluster, settings))


def _sensor(rollups: RollupPass) -> dg.SensorDefinition:
    @dg.sensor(
        name=op_name(rollups.cluster, "rollups"),
        description=f"Records instances of roll-ups on {rollups.cluster} whose members are there",
        minimum_interval_seconds=INTERVAL_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def evaluate(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
        recorded = rollups.record(open_ledger(rollups.settings, context.instance))
        return dg.SkipReason(f"{count_of(recorded, 'instance')} of roll-ups recorded")

    return evaluate
