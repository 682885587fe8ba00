"""Sensors of notification: receivers of events are decided and recorded before anything is sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import dagster as dg
from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.status import Status, statuses
from falcon_assets.errors import count_of
from falcon_assets.features.notification import store as notification_events
from falcon_assets.features.notification import store as notifications
from falcon_assets.features.notification.delivery import Delivery
from falcon_assets.features.notification.rules import receivers
from falcon_assets.features.notification.store import Subject
from falcon_assets.history.database import lock_in_transaction
from falcon_assets.history.events.instance_event import InstanceEvent, Notice
from falcon_assets.history.platform.open_ledger import Ledger, open_ledger
from falcon_assets.history.tables.row_values import ProcessKey
from falcon_assets.hooks import EventReceiver, hooks
from falcon_assets.instances.store import reruns
from falcon_assets.model.event_kind import OF_FEEDS, EventKind
from falcon_assets.model.feed import Feed
from falcon_assets.model.notification import Notification
from falcon_assets.model.process import Process
from falcon_assets.model.reference import EncryptedValue
from falcon_assets.planning.dagster_names import op_name
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState, RerunRequest
from falcon_assets.planning.retries import is_final
from falcon_assets.planning.workloads import Workload
from falcon_assets.settings import Settings

_AT_ONCE = 5_000
"""Events of each kind in a tick; the next takes the others."""
_FAILURES = (EventKind.FAILED, EventKind.TIMED_OUT)


class NotificationRecording:
    """Records events for their receivers; ``programs`` receive all events, independent of declarations."""

    def __init__(self, store: EntityStore, settings: Settings) -> None:
        self.clusters = tuple(store.clusters)
        self._settings, self.store = settings, store
        found = hooks().event_receivers(store=store, settings=settings)
        self.programs: list[EventReceiver] = [program for several in found for program in several]
        self.wanted: Mapping[Subject, set[EventKind]] = dict(self._wanted())

    @property
    def encrypted(self) -> dict[str, EncryptedValue]:
        """URLs of receivers that are encrypted in definitions, by label."""
        entities: list[Feed | Process] = [*self.store.feeds.values(), *self.store.processes.values()]
        urls = (receiver.url for one in entities if one.notification for receiver in one.notification.to)
        return {url.label: url for url in urls if isinstance(url, EncryptedValue)}

    def _wanted(self) -> Iterator[tuple[Subject, set[EventKind]]]:
        for cluster in self.clusters:
            if events := set[EventKind]().union(*(one.events for one in self.programs if cluster in one.clusters)):
                yield notification_events.whole(cluster), events
        for workload in self.store.active_workloads:
            if events := self._events(workload.entity):
                yield ("process", workload.name, workload.cluster), events
        for feed in self.store.feeds.values():
            for on, _ in self.store.feed_clusters(feed):
                if self.store.includes(on.name, feed.name) and (events := self._events(feed) & OF_FEEDS):
                    yield ("feed", feed.name, on.name), events

    def _events(self, entity: Feed | Process) -> set[EventKind]:
        notification = self._notification(entity)
        return set(notification.on) if notification else set()

    def _notification(self, entity: Feed | Process) -> Notification | None:
        return entity.notification or self._settings.notification

    def begin(self, ledger: Ledger, real_now: datetime) -> None:
        """Starts to keep events for subjects without a subscription."""
        with ledger.engine.begin() as connection:
            notification_events.begin_to_listen(connection, self.wanted, real_now, self._settings.now())

    def record(self, ledger: Ledger, real_now: datetime) -> int:
        """Takes new events and records their receivers, in one transaction; returns the number of notices."""
        ledger.catch_up()
        now = self._settings.now()
        with ledger.engine.begin() as connection:
            lock_in_transaction(connection, f"falcon notifications {' '.join(sorted(self.clusters))}")
            notification_events.listen(connection, self.clusters, self.wanted, real_now, now)
            happened = notification_events.take(connection, self.clusters, _AT_ONCE)
            for more in hooks().unlogged_events(connection=connection, clusters=self.clusters, limit=_AT_ONCE):
                happened += more
            return notifications.add(connection, list(self._notices(connection, happened, now)), real_now)

    def _notices(self, connection: Connection, happened: Sequence[InstanceEvent], now: datetime) -> Iterator[Notice]:
        failed = [one for one in happened if one.event in _FAILURES]
        requests = reruns.requests_at(connection, [(one.name, one.cluster, one.instance) for one in failed])
        status = statuses(connection, self._entities(failed), now)
        for one in happened:
            workload = self.store.workload(one.name, one.cluster) if one.kind == "process" else None
            entity = workload.entity if workload else self.store.feeds.get(one.name) if one.kind == "feed" else None
            if entity is None:
                continue  # it was deleted meanwhile
            for program in self.programs:
                if one.cluster in program.clusters and program.takes(one, entity.name):
                    yield Notice(program.name, entity.kind, entity.name, one)
            if workload is not None and one.event in _FAILURES:
                is_scheduled = status[entity.kind, entity.name].status is not Status.SUBMITTED
                if is_scheduled and not _is_final(one, workload, requests):
                    continue
            for receiver in receivers(one.event, entity.notification, self._settings.notification):
                yield Notice(receiver, entity.kind, entity.name, one)

    def _entities(self, happened: Iterable[InstanceEvent]) -> list[Feed | Process]:
        found = {(one.name, one.cluster): self.store.workload(one.name, one.cluster) for one in happened}
        return [workload.entity for workload in found.values() if workload]


def _is_final(one: InstanceEvent, workload: Workload, requests: Mapping[ProcessKey, RerunRequest]) -> bool:
    if one.run is not None and one.run.get("held_back"):
        return True
    state = InstanceState(one.event.value)
    record = InstanceRecord(one.instance, state, attempt=one.attempt, failures=one.failures, ended=one.at)
    return is_final(record, workload.retry, requests.get((one.name, one.cluster, one.instance)))


_INTERVAL_SECONDS = 15


def notification_sensors(store: EntityStore, settings: Settings) -> Iterator[dg.SensorDefinition]:
    """Returns at most one sensor, named after the first cluster: a code location may have several sets of entities."""
    recording = NotificationRecording(store, settings)
    if recording.wanted:
        yield _sensor(op_name(min(store.clusters), "notifications"), recording, settings)


def _sensor(name: str, recording: NotificationRecording, settings: Settings) -> dg.SensorDefinition:
    delivery = Delivery(recording.clusters, settings.environ, _real_now, recording.programs, recording.encrypted)

    @dg.sensor(
        name=name,
        description="Sends notifications of what happens to instances",
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
        return dg.SkipReason(f"{count_of(noted, 'event')} noted; {count_of(sent, 'message')} sent")

    return evaluate


def _real_now() -> datetime:
    return datetime.now(UTC)
