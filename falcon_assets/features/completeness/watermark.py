"""Watermarks: the time up to which every instance of a feed is there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.features.completeness.store import KnownShare, known_shares, why_incomplete
from falcon_assets.instances.store.watermarks import watermark
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import Instant
from falcon_assets.operations.operation import Result
from falcon_assets.planning.timeline import feed_timeline


@dataclass(frozen=True)
class Watermark(Result):
    """How far a feed is complete on a cluster.

    Attributes:
        watermark: Every instance before this nominal time is there, or was until it was evicted.
        why: Of the instance of that time; empty: its time has not come, or nothing is known of it.
        share: Of the records sent that have come, of the instance of that time; 1: its time has not come.
    """

    feed: str
    cluster: str
    watermark: Instant
    why: str
    share: float


def watermarks(connection: Connection, store: EntityStore, feed: Feed, now: datetime) -> list[Watermark]:
    """Returns those on all clusters of the code location."""
    found = {
        cluster.name: watermark(connection, feed_timeline(feed, cluster.name), cluster.name, feed.name, now)
        for cluster, _ in store.feed_clusters(feed)
    }
    rules = {(cluster, feed.name, at): feed.completeness for cluster, at in found.items() if feed.completeness}
    reasons, shares = why_incomplete(connection, rules), known_shares(connection, rules)

    def of(cluster: str, at: datetime) -> Watermark:
        key = (cluster, feed.name, at)
        known = shares.get(key, KnownShare()).percent
        return Watermark(
            feed.name, cluster, at, str(reasons.get(key, "")), 1.0 if at > now else float(known or 0) / 100
        )

    return [of(*one) for one in found.items()]
