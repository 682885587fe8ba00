"""Hooks of SLAs: asset checks, sensors that evaluate them, events of breaches, and their part of ``falcon run``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from falcon_assets.errors import FalconError
from falcon_assets.hooks import hookimpl

if TYPE_CHECKING:
    import dagster as dg
    from sqlalchemy import Connection

    from falcon_assets.catalog.store import EntityStore
    from falcon_assets.features.sla.checks import SlaChecks
    from falcon_assets.features.sla.evaluation import SlaEvaluation
    from falcon_assets.history.events.instance_event import InstanceEvent
    from falcon_assets.history.platform.open_ledger import Ledger
    from falcon_assets.model.cluster import Cluster
    from falcon_assets.settings import Settings


@hookimpl
def unlogged_events(connection: Connection, clusters: Collection[str], limit: int) -> list[InstanceEvent]:
    from falcon_assets.features.sla.breach_events import take_breaches

    return take_breaches(connection, clusters, limit)


@hookimpl
def definitions(store: EntityStore, settings: Settings) -> dg.Definitions:
    import dagster as dg

    from falcon_assets.features.sla.checks import SlaChecks
    from falcon_assets.features.sla.sensors import sla_sensors

    checks = [*SlaChecks(store, settings).definitions()]
    return dg.Definitions(asset_checks=checks, sensors=[*sla_sensors(store, settings)])


@hookimpl
def foreground_steps(store: EntityStore, settings: Settings, clusters: Sequence[Cluster]) -> _Evaluating:
    from falcon_assets.features.sla.checks import SlaChecks
    from falcon_assets.features.sla.evaluation import SlaEvaluation

    slas = [SlaEvaluation(store, cluster.name, settings.now) for cluster in clusters]
    return _Evaluating(SlaChecks(store, settings), [one for one in slas if one.deadlines])


@dataclass(frozen=True)
class _Evaluating:
    checks: SlaChecks
    slas: Sequence[SlaEvaluation]

    def step(self, ledger: Ledger) -> dict[str, str]:
        from falcon_assets.features.sla.sensors import evaluate_all

        left_out = dict[str, str]()
        for one in self.slas:
            try:
                evaluate_all(ledger, one, self.checks)
            except FalconError as error:
                left_out[f"SLAs on {one.cluster}"] = str(error)
        return left_out
