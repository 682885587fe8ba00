"""Changes of the health of executors as events, each once."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Connection

from falcon_assets.history.events.instance_event import EXECUTOR, InstanceEvent
from falcon_assets.instances.store.executors import set_told, untold
from falcon_assets.model.event_kind import EventKind
from falcon_assets.planning.executor_health import ExecutorRecord, Health


def take_changes(connection: Connection, clusters: Collection[str], limit: int) -> list[InstanceEvent]:
    """Takes the executors that went offline or came back since the last call; one that was always online is no news."""
    found = []
    for record in untold(connection, clusters, limit):
        set_told(connection, record)
        if record.since is not None and (record.told or record.health is Health.OFFLINE):
            found.append(_event(record, record.since))
    return found


def _event(record: ExecutorRecord, since: datetime) -> InstanceEvent:
    is_away = record.health is Health.OFFLINE
    kind = EventKind.EXECUTOR_OFFLINE if is_away else EventKind.EXECUTOR_ONLINE
    about = (EXECUTOR, record.name, record.cluster, since.replace(second=0, microsecond=0), since)
    return InstanceEvent(kind, *about, since.isoformat(), record.problem)
