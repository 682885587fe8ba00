"""Events that are to be told, until it is decided whom: kept only where somebody is to be told."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from sqlalchemy import Connection, and_, delete, select, text, update
from sqlalchemy.dialects.postgresql import insert

from falcon_assets.ledger.database.upsert import among, parts, upsert
from falcon_assets.ledger.tables import FOLD, NOTIFICATION_EVENTS, NOTIFIED, SLA_BREACHES
from falcon_assets.model.notification import Told
from falcon_assets.planning.notification.events import Happening, sla_happening
from falcon_assets.planning.sla.deadlines import SlaLevel

Subject: TypeAlias = tuple[str, str, str]
"""Kind (``process`` of processes and replications, else ``feed``), name, cluster."""

_SEEN_EVERY, _STALE_AFTER = timedelta(hours=1), timedelta(days=3)
_SUBJECT = (NOTIFIED.c.kind, NOTIFIED.c.name, NOTIFIED.c.cluster)


def note(connection: Connection, happened: Sequence[Happening]) -> None:
    """Keeps those of the events that somebody is to be told; each once."""
    told: dict[Subject, Any] = {}
    for part in parts({(one.kind, one.name, one.cluster) for one in happened}):
        for row in connection.execute(select(NOTIFIED).where(among(_SUBJECT, part))):
            told[row.kind, row.name, row.cluster] = row
    rows = []
    for one in happened:
        wanted = told.get((one.kind, one.name, one.cluster))
        is_new = wanted is not None and (one.event_id is None or one.event_id > wanted.since_event)
        if wanted is not None and is_new and one.event.value in wanted.events:
            rows.append({**asdict(one), "event": one.event.value, "key": one.key})
    if rows:
        connection.execute(insert(NOTIFICATION_EVENTS).on_conflict_do_nothing(), rows)


def listen(
    connection: Connection,
    clusters: Collection[str],
    wanted: Mapping[Subject, Collection[Told]],
    real_now: datetime,
    now: datetime,
) -> None:
    """From now on keeps what is ``wanted`` on these clusters, and nothing else; nothing of the past.

    What nobody has asked for in days is asked for anew: its sensor was off, or it was not declared.
    """
    known = {
        (row.kind, row.name, row.cluster): row
        for row in connection.execute(select(NOTIFIED).where(NOTIFIED.c.cluster.in_(clusters)))
    }
    for part in parts([key for key in known if key not in wanted]):
        connection.execute(delete(NOTIFIED).where(among(_SUBJECT, part)))
    folded = connection.execute(select(FOLD.c.event_id)).scalar() or 0
    rows = []
    for key, events in wanted.items():
        row, names = known.get(key), sorted(one.value for one in events)
        age = abs(real_now - row.seen_at) if row is not None else _STALE_AFTER  # the clock may be set back
        since_event, since = (folded, now) if row is None or age >= _STALE_AFTER else (row.since_event, row.since)
        if row is not None and Told.SLA.value in set(names) - set(row.events):
            since = now
        if row is None or row.events != names or age > _SEEN_EVERY:
            mine = dict(zip(("kind", "name", "cluster"), key, strict=True))
            rows.append({**mine, "events": names, "since_event": since_event, "since": since, "seen_at": real_now})
    upsert(connection, NOTIFIED, rows)


def begin_to_listen(
    connection: Connection, wanted: Mapping[Subject, Collection[Told]], real_now: datetime, now: datetime
) -> None:
    """Keeps what is ``wanted`` from now on, of what nobody has listened to yet; :func:`listen` goes on with it."""
    folded = connection.execute(select(FOLD.c.event_id)).scalar() or 0
    since = {"since_event": folded, "since": now, "seen_at": real_now}
    rows = [
        {"kind": kind, "name": name, "cluster": cluster, "events": sorted(one.value for one in events), **since}
        for (kind, name, cluster), events in wanted.items()
    ]
    if rows:
        connection.execute(insert(NOTIFIED).on_conflict_do_nothing(), rows)


def take(connection: Connection, clusters: Collection[str], limit: int) -> list[Happening]:
    """The oldest events on these clusters, which are then not kept any more."""
    table = NOTIFICATION_EVENTS.c
    oldest = select(table.id).where(table.cluster.in_(clusters)).order_by(table.id).limit(limit)
    gone = delete(NOTIFICATION_EVENTS).where(table.id.in_(oldest.scalar_subquery())).returning(NOTIFICATION_EVENTS)
    return [_happening(row) for row in sorted(connection.execute(gone), key=lambda row: row.id)]


def take_breaches(connection: Connection, clusters: Collection[str], limit: int) -> list[Happening]:
    """Breaches of SLAs that are new or met since the last time, of what is listened to; each once."""
    table = SLA_BREACHES.c
    key = (table.kind, table.entity, table.cluster, table.level, table.instance)
    changed = (
        select(SLA_BREACHES, NOTIFIED.c.since)
        .outerjoin(
            NOTIFIED,
            and_(table.kind == NOTIFIED.c.kind, table.entity == NOTIFIED.c.name, table.cluster == NOTIFIED.c.cluster),
        )
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
            happened.append(sla_happening(*about, SlaLevel(row.level), row.deadline, row.state, row.cleared_at))
    return [one for one in happened if one is not None]


def _happening(row: Any) -> Happening:
    about = (Told(row.event), row.kind, row.name, row.cluster, row.instance, row.at, row.source, row.reason)
    return Happening(*about, row.attempt, row.failures, row.event_id, row.run)
