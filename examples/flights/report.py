"""What is there of every feed, from the ledger."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from falcon_assets.catalog.store import EntityStore
from falcon_assets.history.tables import FEED_INSTANCES


@dataclass(frozen=True)
class FeedReport:
    """The available instances of a feed on a cluster.

    Attributes:
        feed: Its name.
        cluster: Where.
        instances: How many there are.
        records: In all of them; None where nobody counted them: they landed from outside.
        bytes: Of all of them.
    """

    feed: str
    cluster: str
    instances: int
    records: int | None
    bytes: int


def feed_reports(store: EntityStore, connection: Connection) -> list[FeedReport]:
    """One row per feed and cluster, in the order of the definitions."""
    table = FEED_INSTANCES.c
    key = (table.feed, table.cluster)
    sums = select(*key, func.count(), func.sum(table.records), func.sum(table.bytes)).group_by(*key)
    found = {(row[0], row[1]): (row[2], row[3], row[4]) for row in connection.execute(sums)}
    places = [(feed.name, cluster.name) for feed in store.feeds.values() for cluster, _ in store.feed_clusters(feed)]
    return [_report(*place, *found.get(place, (0, None, 0))) for place in places]


def _report(feed: str, cluster: str, instances: int, records: int | None, size: int | None) -> FeedReport:
    return FeedReport(feed, cluster, instances, None if records is None else int(records), int(size or 0))
