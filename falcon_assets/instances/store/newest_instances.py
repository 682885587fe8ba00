"""The newest instance of each feed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, and_, func, select, true

from falcon_assets.history.database import rows_of
from falcon_assets.history.folding.totals import FEEDS
from falcon_assets.history.queries import Name, signatures
from falcon_assets.history.tables import FEED_INSTANCES, TOTALS
from falcon_assets.history.tables.transfers import DELIVERIES
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process
from falcon_assets.planning.instance_record import FeedState
from falcon_assets.planning.snapshots import unrecorded_windows
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.planning.workloads import Workload


def newest_available(connection: Connection, now: datetime) -> dict[Name, datetime]:
    """By (cluster, feed), not dated after now; one step in an index for each."""
    there, table = TOTALS.c, FEED_INSTANCES.c
    is_there = FeedState.AVAILABLE.value
    own = and_(table.cluster == there.cluster, table.feed == there.entity, table.state == is_there)
    newest = select(func.max(table.instance).label("instance")).where(own, table.instance <= now).lateral("newest")
    counted = (there.what == FEEDS, there.label == is_there)
    columns = (there.cluster, there.entity, newest.c.instance)
    found = connection.execute(select(*columns).join_from(TOTALS, newest, true()).where(*counted))
    return {(cluster, feed): instance for cluster, feed, instance in found if instance is not None}


def newest_written(connection: Connection, workloads: Iterable[Workload]) -> dict[str, datetime]:
    """By feed, for snapshots that processes write, as copies arrive in no order; by name, for exports that replace."""
    found: dict[str, set[str]] = {}
    delivered: dict[str, datetime] = {}
    for workload in workloads:
        if isinstance(workload.entity, Process):
            found.setdefault(workload.cluster, set()).update(one.feed for one in workload.snapshots)
        elif not workload.outputs and workload.replaces_earlier:
            own = (DELIVERIES.c.process == workload.name, DELIVERIES.c.cluster == workload.cluster)
            newest = connection.scalar(select(func.max(DELIVERIES.c.nominal)).where(*own))
            delivered |= {workload.name: newest} if newest else {}
    return delivered | {
        feed: newest.instance
        for cluster, feeds in found.items()
        for feed, newest in newest_recorded(connection, cluster, sorted(feeds)).items()
    }


def unrecorded_before(connection: Connection, cluster: str, feed: Feed, instance: datetime) -> list[datetime]:
    """Never recorded instances of a snapshot feed, oldest first."""
    line, newest = feed_timeline(feed, cluster), newest_recorded(connection, cluster, [feed.name]).get(feed.name)
    windows = unrecorded_windows(line, instance, newest.instance if newest else None, newest.count if newest else 0)
    key = (cluster, feed.name)
    known = {one for window in windows for one in signatures(connection, {key: window}).get(key, {})}
    return [one for window in windows for one in line.between(*window) if one < instance and one not in known]


@dataclass(frozen=True)
class NewestRecorded:
    instance: datetime
    signature: str | None
    count: int


def newest_recorded(connection: Connection, cluster: str, feeds: Collection[str]) -> dict[str, NewestRecorded]:
    if not feeds:
        return {}
    table, totals = FEED_INSTANCES.c, TOTALS.c
    asked = rows_of(FEED_INSTANCES, {"feed": list(feeds)})
    own = and_(table.cluster == cluster, table.feed == asked.c.feed)
    last = select(table.instance, table.signature).where(own).order_by(table.instance.desc()).limit(1).lateral("last")
    counted = (totals.what == FEEDS, totals.entity == asked.c.feed, totals.cluster == cluster)
    count = select(func.sum(totals.number)).where(*counted).scalar_subquery()
    columns = (asked.c.feed, last.c.instance, last.c.signature, count.label("number"))
    found = connection.execute(select(*columns).join_from(asked, last, true()))
    return {row.feed: NewestRecorded(row.instance, row.signature, int(row.number)) for row in found}
