"""Hooks of notification: events are recorded for their receivers, and a sensor delivers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from falcon_assets.hooks import hookimpl

if TYPE_CHECKING:
    import dagster as dg
    from sqlalchemy import Connection

    from falcon_assets.catalog.store import EntityStore
    from falcon_assets.history.events.instance_event import InstanceEvent
    from falcon_assets.history.platform.open_ledger import Ledger
    from falcon_assets.settings import Settings


@hookimpl
def instances_changed(connection: Connection, events: Sequence[InstanceEvent]) -> None:
    from falcon_assets.features.notification.store import note

    note(connection, events)


@hookimpl
def metric_values(connection: Connection, store: EntityStore) -> Mapping[str, Mapping[tuple[str, ...], float]]:
    from falcon_assets.features.notification.store import waiting_events

    waiting = waiting_events(connection, store.clusters)
    return {"falcon_waiting_events": {(receiver,): number for receiver, number in waiting.items()}}


@hookimpl
def definitions(store: EntityStore, settings: Settings) -> dg.Definitions:
    import dagster as dg

    from falcon_assets.features.notification.sensors import notification_sensors

    return dg.Definitions(sensors=[*notification_sensors(store, settings)])


@hookimpl
def foreground_steps(store: EntityStore, settings: Settings) -> _Listening:
    return _Listening(store, settings)


@dataclass(frozen=True)
class _Listening:
    """Only starts recording: the daemon delivers, and where it never ran, events would be lost."""

    store: EntityStore
    settings: Settings

    def begin(self, ledger: Ledger) -> None:
        from falcon_assets.features.notification.sensors import NotificationRecording

        NotificationRecording(self.store, self.settings).begin(ledger, datetime.now(UTC))

    def step(self, ledger: Ledger) -> dict[str, str]:
        return {}
