"""Sensors that evaluate SLAs and report the results to Dagster."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import count_of
from falcon_assets.features.sla.checks import SlaChecks
from falcon_assets.features.sla.evaluation import SlaEvaluation
from falcon_assets.features.sla.lists import InstanceKey, breaches_of, set_told, untold_instances
from falcon_assets.history.platform.open_ledger import Ledger, open_ledger
from falcon_assets.planning.dagster_names import op_name
from falcon_assets.settings import Settings

_INTERVAL_SECONDS = 15
_TOLD_AT_ONCE = 200
"""Instances in a tick: a thousand checks take ten seconds."""
_ROUNDS = 5
"""Evaluations in a tick, where there is more to judge than fits in one."""


def sla_sensors(store: EntityStore, settings: Settings) -> Iterator[dg.SensorDefinition]:
    for cluster in store.clusters:
        evaluation = SlaEvaluation(store, cluster, settings.now)
        if evaluation.deadlines or evaluation.problems:
            yield _sensor(cluster, evaluation, SlaChecks(store, settings), settings)


def _sensor(cluster: str, evaluation: SlaEvaluation, checks: SlaChecks, settings: Settings) -> dg.SensorDefinition:
    @dg.sensor(
        name=op_name(cluster, "sla"),
        description=f"Records which instances on {cluster} breach their SLA, and which of them have come after all",
        minimum_interval_seconds=_INTERVAL_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def evaluate(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
        breached, cleared = evaluate_all(open_ledger(settings, context.instance), evaluation, checks, _ROUNDS)
        for (kind, name), problem in evaluation.problems.items():
            context.log.error(f"the SLA of {kind} {name} on {cluster} is not evaluated: {problem}")
        return dg.SkipReason(f"{count_of(breached, 'new breach', 'new breaches')}, {cleared} cleared")

    return evaluate


def evaluate_all(
    ledger: Ledger, evaluation: SlaEvaluation, checks: SlaChecks, rounds: int = sys.maxsize
) -> tuple[int, int]:
    """Evaluates all, in so many rounds, for Dagster too; returns the numbers of new breaches and of those cleared."""
    breached, cleared, kept = 0, 0, list[InstanceKey]()
    for _ in range(rounds):
        found = evaluation.evaluate(ledger)
        breached, cleared = breached + found.breached, cleared + found.cleared
        kept += found.kept
        if found.is_complete:
            break
    tell_dagster(ledger, checks, evaluation.cluster, kept)
    return breached, cleared


def tell_dagster(ledger: Ledger, checks: SlaChecks, cluster: str, kept: Sequence[InstanceKey] = ()) -> None:
    """Reports asset checks of instances whose breaches are new or over, a limited number per call.

    After a kill the last one is reported again, with equal content. Of a long pause, ``kept`` instances may stay
    without.
    """
    newest = sorted(kept, key=lambda one: one[-1], reverse=True)[:_TOLD_AT_ONCE]
    with ledger.engine.connect() as connection:
        instances = untold_instances(connection, cluster, _TOLD_AT_ONCE)
        found = breaches_of(connection, [*instances, *newest])
    for kind, entity, _, instance in newest:
        check = checks.find(kind, entity, cluster)
        partition = check.partition_of(instance) if check else None
        if check is not None and partition is not None and (kind, entity, cluster, instance) not in found:
            ledger.instance.report_runless_asset_event(check.evaluation(partition, (), is_over=True))
    for kind, entity, _, instance in instances:
        rows, check = found[kind, entity, cluster, instance], checks.find(kind, entity, cluster)
        partition = check.partition_of(instance) if check else None
        if check is not None and partition is not None:
            ledger.instance.report_runless_asset_event(check.evaluation(partition, rows))
        with ledger.engine.begin() as connection:
            set_told(connection, rows)
