"""Sensors that evaluate SLAs."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import count_of
from falcon_assets.orchestration.coordination.sla_evaluation import SlaEvaluation
from falcon_assets.orchestration.platform.open_ledger import open_ledger
from falcon_assets.planning.instances.dagster_names import op_name
from falcon_assets.settings import Settings

_INTERVAL_SECONDS = 15
_ROUNDS = 5
"""In a tick at most, where there is more to judge than is judged at once."""


def sla_sensors(store: EntityStore, settings: Settings) -> Iterator[dg.SensorDefinition]:
    """A sensor for each cluster on which something has an SLA."""
    for cluster in store.clusters:
        evaluation = SlaEvaluation(store, cluster, settings.now)
        if evaluation.deadlines or evaluation.problems:
            yield _sensor(cluster, evaluation, settings)


def _sensor(cluster: str, evaluation: SlaEvaluation, settings: Settings) -> dg.SensorDefinition:
    @dg.sensor(
        name=op_name(cluster, "sla"),
        description=f"Records which instances on {cluster} breach their SLA, and which of them have come after all",
        minimum_interval_seconds=_INTERVAL_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def evaluate(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
        breached = cleared = 0
        for _ in range(_ROUNDS):
            found = evaluation.evaluate(open_ledger(settings, context.instance))
            breached, cleared = breached + found.breached, cleared + found.cleared
            if found.is_complete:
                break
        for (kind, name), problem in evaluation.problems.items():
            context.log.error(f"the SLA of {kind} {name} on {cluster} is not evaluated: {problem}")
        return dg.SkipReason(f"{count_of(breached, 'new breach', 'new breaches')}, {cleared} cleared")

    return evaluate
