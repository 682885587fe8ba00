"""Sensors that probe the executors of clusters."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import count_of
from falcon_assets.features.executors.watching import ExecutorWatch, changed
from falcon_assets.history.platform.open_ledger import open_ledger
from falcon_assets.instances.coordination.ticks import INTERVAL_SECONDS
from falcon_assets.planning.dagster_names import op_name
from falcon_assets.settings import Settings


def executor_sensors(store: EntityStore, settings: Settings) -> Iterator[dg.SensorDefinition]:
    for cluster in store.clusters.values():
        if cluster.executors:
            yield _sensor(ExecutorWatch(store, cluster, settings))


def _sensor(watch: ExecutorWatch) -> dg.SensorDefinition:
    @dg.sensor(
        name=op_name(watch.cluster.name, "executors"),
        description=f"Asks the executors of {watch.cluster.name} how they are; starts and stops those that it provides",
        minimum_interval_seconds=INTERVAL_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def evaluate(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
        ledger = open_ledger(watch.settings, context.instance)
        for news in watch.provision(ledger):
            context.log.info(news)
        probed = watch.probe_due(ledger)
        for news in changed(probed):
            context.log.warning(news)
        offline = sum(1 for one in probed if one.after.failures)
        return dg.SkipReason(f"{count_of(len(probed), 'executor')} asked, {offline} without an answer")

    return evaluate
