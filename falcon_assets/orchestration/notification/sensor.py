"""A sensor that tells receivers what became of instances."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import count_of
from falcon_assets.orchestration.notification.delivery import Delivery
from falcon_assets.orchestration.notification.lineage import LineageSending
from falcon_assets.orchestration.notification.recording import NotificationRecording
from falcon_assets.orchestration.platform.open_ledger import open_ledger
from falcon_assets.planning.instances.dagster_names import op_name
from falcon_assets.settings import Settings

_INTERVAL_SECONDS = 15


def notification_sensors(store: EntityStore, settings: Settings) -> Iterator[dg.SensorDefinition]:
    """One for all that these entities tell; none where they tell nobody.

    It is named after the first cluster: a code location may have several sets of entities.
    """
    recording = NotificationRecording(store, settings)
    if recording.wanted:
        yield _sensor(op_name(min(store.clusters), "notifications"), recording, settings)


def _sensor(name: str, recording: NotificationRecording, settings: Settings) -> dg.SensorDefinition:
    delivery = Delivery(recording.clusters, settings.environ, _real_now, LineageSending(recording.store, settings))

    @dg.sensor(
        name=name,
        description="Tells the receivers of notifications what became of instances",
        minimum_interval_seconds=_INTERVAL_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def evaluate(context):  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
        ledger = open_ledger(settings, context.instance)
        noted = recording.record(ledger, _real_now())
        delivered = delivery.deliver(ledger)
        for one in delivered:
            (context.log.warning if one.problem or one.refused else context.log.info)(str(one))
        sent = sum(not one.problem for one in delivered)
        return dg.SkipReason(f"{count_of(noted, 'event')} to tell; {count_of(sent, 'message')} sent")

    return evaluate


def _real_now() -> datetime:
    return datetime.now(UTC)
