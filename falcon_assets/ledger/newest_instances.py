"""The newest instance of each feed."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Connection, and_, func, select, true

from falcon_assets.ledger.queries import Name
from falcon_assets.ledger.tables import FEED_INSTANCES, TOTALS
from falcon_assets.ledger.totals import FEEDS
from falcon_assets.ledger.upsert import rows_of
from falcon_assets.planning.instances.instance_record import FeedState


def newest_available(connection: Connection, now: datetime) -> dict[Name, datetime]:
    """(cluster, feed) -> its newest available instance that is not dated after now; one step in an index for each."""
    there, table = TOTALS.c, FEED_INSTANCES.c
    is_there = FeedState.AVAILABLE.value
    own = and_(table.cluster == there.cluster, table.feed == there.entity, table.state == is_there)
    newest = select(func.max(table.instance).label("instance")).where(own, table.instance <= now).lateral("newest")
    counted = (there.what == FEEDS, there.label == is_there)
    columns = (there.cluster, there.entity, newest.c.instance)
    found = connection.execute(select(*columns).join_from(TOTALS, newest, true()).where(*counted))
    return {(cluster, feed): instance for cluster, feed, instance in found if instance is not None}


def newest_signatures(
    connection: Connection, cluster: str, feeds: Collection[str]
) -> dict[str, dict[datetime, str | None]]:
    """Feed -> its newest instance that was ever recorded on the cluster -> the signature of that."""
    if not feeds:
        return {}
    table = FEED_INSTANCES.c
    asked = rows_of(FEED_INSTANCES, {"feed": list(feeds)})
    own = and_(table.cluster == cluster, table.feed == asked.c.feed)
    last = select(table.instance, table.signature).where(own).order_by(table.instance.desc()).limit(1).lateral("last")
    found = connection.execute(select(asked.c.feed, *last.c).join_from(asked, last, true()))
    return {feed: {instance: signature} for feed, instance, signature in found}
