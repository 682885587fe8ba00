"""Hooks of executors: their sensors and their part of ``falcon run``, metrics, and events of their health."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from falcon_assets.hooks import hookimpl

if TYPE_CHECKING:
    import dagster as dg
    from sqlalchemy import Connection

    from falcon_assets.catalog.store import EntityStore
    from falcon_assets.features.executors.watching import ExecutorWatch
    from falcon_assets.history.events.instance_event import InstanceEvent
    from falcon_assets.history.platform.open_ledger import Ledger
    from falcon_assets.model.cluster import Cluster
    from falcon_assets.settings import Settings


@hookimpl
def definitions(store: EntityStore, settings: Settings) -> dg.Definitions:
    import dagster as dg

    if not any(one.executors for one in store.clusters.values()):
        return dg.Definitions()
    from falcon_assets.features.executors.sensors import executor_sensors

    return dg.Definitions(sensors=[*executor_sensors(store, settings)])


@hookimpl(tryfirst=True)  # whoever runs something in the same round needs to know
def foreground_steps(store: EntityStore, settings: Settings, clusters: Sequence[Cluster]) -> _Probing | None:
    watched = [one for one in clusters if one.executors]
    if not watched:
        return None
    from falcon_assets.features.executors.watching import ExecutorWatch

    return _Probing([ExecutorWatch(store, one, settings) for one in watched])


@dataclass(frozen=True)
class _Probing:
    watches: Sequence[ExecutorWatch]

    def step(self, ledger: Ledger) -> dict[str, str]:
        """Those that are offline are named where something waits for them."""
        for one in self.watches:
            one.provision(ledger)
            one.probe_due(ledger, all_online=True)  # the session of this process came or went
        return {}


@hookimpl
def unlogged_events(connection: Connection, clusters: Collection[str], limit: int) -> list[InstanceEvent]:
    from falcon_assets.features.executors.health_events import take_changes

    return take_changes(connection, clusters, limit)


@hookimpl
def metric_values(
    connection: Connection, store: EntityStore, now: datetime
) -> Mapping[str, Mapping[tuple[str, ...], float]]:
    if not any(one.executors for one in store.clusters.values()):
        return {}
    from falcon_assets.features.executors.listing import metrics_of

    return metrics_of(connection, store)
