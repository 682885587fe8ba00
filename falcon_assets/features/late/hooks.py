"""Hooks of late data: a sensor for each pipeline, and its part of ``falcon run``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from falcon_assets.errors import FalconError
from falcon_assets.hooks import hookimpl

if TYPE_CHECKING:
    import dagster as dg

    from falcon_assets.catalog.store import EntityStore
    from falcon_assets.features.late.sensors import LateArrivalHandler
    from falcon_assets.history.platform.open_ledger import Ledger
    from falcon_assets.planning.workloads import Workload
    from falcon_assets.settings import Settings


@hookimpl
def definitions(store: EntityStore, settings: Settings) -> dg.Definitions:
    import dagster as dg

    from falcon_assets.features.late.sensors import late_arrival_sensors

    return dg.Definitions(sensors=[*late_arrival_sensors(store, settings)])


@hookimpl
def foreground_steps(settings: Settings, workloads: Sequence[Workload]) -> _LateArrival:
    from falcon_assets.features.late.sensors import LateArrivalHandler

    return _LateArrival(LateArrivalHandler(settings.now, workloads))


@dataclass(frozen=True)
class _LateArrival:
    handler: LateArrivalHandler

    def step(self, ledger: Ledger) -> dict[str, str]:
        try:
            self.handler.decide(ledger)
        except FalconError as error:
            return {"late data": str(error)}
        return {}
