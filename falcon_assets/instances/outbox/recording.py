"""Recording of events for their receivers, which are decided and recorded before anything is sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.status import Status, statuses
from falcon_assets.history.database import lock_in_transaction
from falcon_assets.history.events.instance_event import EXECUTOR, InstanceEvent, Notice
from falcon_assets.history.folding import subscriptions
from falcon_assets.history.folding.subscriptions import Subject
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.history.tables.row_values import ProcessKey
from falcon_assets.hooks import EventReceiver, hooks
from falcon_assets.instances.outbox import store as outbox
from falcon_assets.instances.store import reruns
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.event_kind import EventKind
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState, RerunRequest
from falcon_assets.planning.retries import is_final
from falcon_assets.planning.workloads import Workload
from falcon_assets.settings import Settings

_AT_ONCE = 5_000
"""Events of each kind in a tick; the next takes the others."""
_FAILURES = (EventKind.FAILED, EventKind.TIMED_OUT)


class EventRecording:
    def __init__(self, store: EntityStore, settings: Settings) -> None:
        self.clusters = tuple(store.clusters)
        self._settings, self.store = settings, store
        found = hooks().event_receivers(store=store, settings=settings)
        self.receivers: list[EventReceiver] = [receiver for several in found for receiver in several]
        self.wanted: dict[Subject, set[EventKind]] = {}
        for receiver in self.receivers:
            for subject, events in receiver.wanted.items():
                self.wanted.setdefault(subject, set()).update(events)

    def begin(self, ledger: Ledger, real_now: datetime) -> None:
        """Starts to keep events for subjects without a subscription."""
        with ledger.engine.begin() as connection:
            subscriptions.begin_to_listen(connection, self.wanted, real_now, self._settings.now())

    def record(self, ledger: Ledger, real_now: datetime) -> int:
        """Takes new events and records their receivers, in one transaction; returns the number of notices."""
        ledger.catch_up()
        now = self._settings.now()
        with ledger.engine.begin() as connection:
            lock_in_transaction(connection, f"falcon notifications {' '.join(sorted(self.clusters))}")
            subscriptions.listen(connection, self.clusters, self.wanted, real_now, now)
            happened = subscriptions.take(connection, self.clusters, _AT_ONCE)
            for more in hooks().unlogged_events(connection=connection, clusters=self.clusters, limit=_AT_ONCE):
                happened += more
            return outbox.add(connection, list(self._notices(connection, happened, now)), real_now)

    def _notices(self, connection: Connection, happened: Sequence[InstanceEvent], now: datetime) -> Iterator[Notice]:
        failed = [one for one in happened if one.event in _FAILURES]
        requests = reruns.requests_at(connection, [(one.name, one.cluster, one.instance) for one in failed])
        status = statuses(connection, self._entities(failed), now)
        for one in happened:
            workload = self.store.workload(one.name, one.cluster) if one.kind == "process" else None
            entity = workload.entity if workload else self._other_entity(one)
            if entity is None:
                continue  # it was deleted meanwhile
            is_retried = False
            if workload is not None and one.event in _FAILURES:
                is_scheduled = status[workload.entity.kind, workload.entity.name].status is not Status.SUBMITTED
                is_retried = is_scheduled and not _is_final(one, workload, requests)
            for receiver in self.receivers:
                for name in receiver.names_for(one, entity, is_retried):
                    about = (EXECUTOR, one.name) if isinstance(entity, Cluster) else (entity.kind, entity.name)
                    yield Notice(name, *about, one)

    def _other_entity(self, one: InstanceEvent) -> Feed | Cluster | None:
        if one.kind == EXECUTOR:
            cluster = self.store.clusters.get(one.cluster)
            return cluster if cluster and any(known.name == one.name for known in cluster.executors) else None
        return self.store.feeds.get(one.name) if one.kind == "feed" else None

    def _entities(self, happened: Iterable[InstanceEvent]) -> list[Feed | Process]:
        found = {(one.name, one.cluster): self.store.workload(one.name, one.cluster) for one in happened}
        return [workload.entity for workload in found.values() if workload]


def _is_final(one: InstanceEvent, workload: Workload, requests: Mapping[ProcessKey, RerunRequest]) -> bool:
    if one.run is not None and one.run.get("held_back"):
        return True
    state = InstanceState(one.event.value)
    record = InstanceRecord(one.instance, state, attempt=one.attempt, failures=one.failures, ended=one.at)
    return is_final(record, workload.retry, requests.get((one.name, one.cluster, one.instance)))
