"""What retention would do now: a verdict on every instance that lies on a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import FalconError
from falcon_assets.ledger import queries
from falcon_assets.ledger.status import EntityStatus, statuses
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.orchestration.retention_copies import CopyVerdict, plan_copies
from falcon_assets.orchestration.retention_holds import ClusterHolds
from falcon_assets.planning.eviction import Verdict, plan_eviction
from falcon_assets.planning.paths import InstancePaths
from falcon_assets.settings import Settings
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.instance_tree import stored_instances


@dataclass(frozen=True)
class FeedPlan:
    """The verdicts on the instances of a feed on a cluster, oldest first.

    Attributes:
        feed: The feed.
        cluster: The cluster.
        status: Of the feed: only what is RUNNING is evicted by itself.
        verdicts: One per instance.
        problem: Why there are none; "" where there are.
        copies: The verdicts on what replications staged of instances that never came.
    """

    feed: Feed
    cluster: Cluster
    status: EntityStatus
    verdicts: tuple[Verdict, ...]
    problem: str = ""
    copies: tuple[CopyVerdict, ...] = ()


def plan_retention(
    connection: Connection,
    store: EntityStore,
    cluster: Cluster,
    feeds: Iterable[Feed],
    settings: Settings,
    now: datetime,
) -> Iterator[FeedPlan]:
    """The plan for each of those feeds on a cluster, as they are asked for; a feed with a problem delays no other.

    Args:
        connection: To the ledger, brought up to date; statuses that are new are written down with it.
        store: The entities.
        cluster: The cluster.
        feeds: Feeds that are on it.
        settings: Where everything lies.
        now: The time that the plan is made for.

    Raises:
        ExpressionError: an output of a late rerun lies beyond the years 1 to 9999.
    """
    wanted = list(feeds)
    if not wanted:
        return
    files = ClusterStore(cluster, settings.home, settings.environ)
    known = statuses(connection, wanted, now)
    holds = ClusterHolds(connection, store, cluster, now)
    for feed in wanted:
        status = known[feed.kind, feed.name]
        try:
            found = stored_instances(files, feed, cluster)
            entry = feed.on(cluster.name)
            ages = bool(entry and entry.retention and entry.retention.minimum_age)
            landed = queries.seen(connection, cluster.name, feed.name) if ages else {}
            paths = InstancePaths(feed, cluster)
            verdicts = plan_eviction(paths, found, now, holds.of(feed), landed.get)
            copies = plan_copies(files, paths, found, now, partial(holds.of_copies, feed))
        except FalconError as error:
            yield FeedPlan(feed, cluster, status, (), str(error))
        else:
            yield FeedPlan(feed, cluster, status, tuple(verdicts), copies=tuple(copies))
