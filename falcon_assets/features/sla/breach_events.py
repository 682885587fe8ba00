"""Breaches of SLAs as events for notification."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Connection, and_, func, or_, select, text, update

from falcon_assets.history.database import among, parts
from falcon_assets.history.events.instance_event import InstanceEvent
from falcon_assets.history.tables.notifications import NOTIFIED
from falcon_assets.history.tables.sla import SLA_BREACHES
from falcon_assets.model.event_kind import EventKind
from falcon_assets.model.sla import SlaLevel


def take_breaches(connection: Connection, clusters: Collection[str], limit: int) -> list[InstanceEvent]:
    """Takes breaches with subscribers that are new or met since the last call; each state once."""
    table = SLA_BREACHES.c
    key = (table.kind, table.entity, table.cluster, table.level, table.instance)
    of_entity = and_(NOTIFIED.c.kind == table.kind, NOTIFIED.c.name == table.entity)
    subscribed = NOTIFIED.c.events.has_key(EventKind.SLA.value) & or_(of_entity, NOTIFIED.c.kind == "cluster")
    since = select(func.min(NOTIFIED.c.since)).where(subscribed, NOTIFIED.c.cluster == table.cluster)
    changed = (
        select(SLA_BREACHES, since.scalar_subquery().label("since"))
        .where(table.cluster.in_(clusters), text("notified IS DISTINCT FROM state"))
        .order_by(table.deadline, *key)
        .limit(limit)
        .with_for_update(of=SLA_BREACHES)
    )
    found = list(connection.execute(changed))
    for part in parts([tuple(getattr(row, column.name) for column in key) for row in found]):
        connection.execute(update(SLA_BREACHES).values(notified=table.state).where(among(key, part)))
    happened = []
    for row in found:
        if row.since is not None and row.recorded_at >= row.since:
            about = (row.kind, row.entity, row.cluster, row.instance)
            happened.append(breach_event(*about, SlaLevel(row.level), row.deadline, row.state, row.cleared_at))
    return [one for one in happened if one is not None]


def breach_event(
    kind: str,
    entity: str,
    cluster: str,
    instance: datetime,
    level: SlaLevel,
    deadline: datetime,
    state: str,
    cleared_at: datetime | None,
) -> InstanceEvent | None:
    """Builds the event of an OPEN or MET breach; None for others."""
    until = deadline.isoformat(timespec="minutes")
    if state == "OPEN":
        reason = f"{'missed' if level.is_missed else 'in danger'}: {level.value} was over at {until}"
    elif state == "MET" and cleared_at is not None:
        reason = f"met at {cleared_at.isoformat(timespec='minutes')}: {level.value} was over at {until}"
    else:
        return None
    return InstanceEvent(
        EventKind.SLA, kind, entity, cluster, instance, cleared_at or deadline, f"{level.value} {state}", reason
    )
