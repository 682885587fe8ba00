"""Resolves a query to workloads or feeds, and the times that it selects."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import UnknownEntityError
from falcon_assets.history.queries import progress
from falcon_assets.instances.coordination.cluster_snapshot import progress_key
from falcon_assets.instances.store.instance_pages import Span
from falcon_assets.instances.views.due import Asked
from falcon_assets.instances.views.feed_writers import due_of_feed
from falcon_assets.instances.views.query import KINDS, InstanceQuery
from falcon_assets.model.expression import nearest
from falcon_assets.operations.paging import require_values
from falcon_assets.planning.instance_record import FeedState, InstanceState
from falcon_assets.planning.workloads import Workload


def asked_for(connection: Connection, store: EntityStore, query: InstanceQuery, now: datetime) -> list[Asked]:
    """Raises UnknownEntityError for unknown names, QueryError for unknown kinds and clusters."""
    require_values(query.filters, {"kind": KINDS[query.type], "cluster": store.clusters})
    if query.cluster is not None and query.cluster not in store.clusters:
        close = nearest(query.cluster, store.clusters)
        raise UnknownEntityError(f"there is no cluster {query.cluster!r}{close}")
    if query.type == "feed":
        return _of_feeds(store, query, now)
    return _of_workloads(connection, store, query, now)


def _of_workloads(connection: Connection, store: EntityStore, query: InstanceQuery, now: datetime) -> list[Asked]:
    chosen = sorted(_chosen(store, query), key=lambda one: (one.name, one.cluster))
    settled = {cluster: progress(connection, cluster) for cluster in {one.cluster for one in chosen}}
    found = []
    for one in chosen:
        span = _span(query, one.name, one.cluster, now)
        open_from = settled[one.cluster].get(progress_key(one), one.timeline.start)
        due = span.last if query.alone else one.last_due(now)
        found.append(Asked(one.kind, one.timeline, span, open_from, due, InstanceState.WAITING))
    return found


def _of_feeds(store: EntityStore, query: InstanceQuery, now: datetime) -> list[Asked]:
    if query.name is not None and query.name in store.processes and query.name not in store.feeds:
        raise UnknownEntityError(f"{query.name!r} is a process: leave out --type feed")
    feeds = [store.feed(query.name)] if query.name is not None else list(store.feeds.values())
    places = sorted((feed.name, cluster.name) for feed in feeds for cluster, _ in store.feed_clusters(feed))
    found = []
    for name, cluster in places:
        if not _fits(query, "feed", cluster, name):
            continue
        timeline, due = due_of_feed(store, store.feed(name), cluster, now)
        span = _span(query, name, cluster, now)
        is_due = not query.alone or span.first <= due
        without_row = FeedState.MISSING if is_due else FeedState.PENDING
        found.append(Asked("feed", timeline, span, timeline.start, due if is_due else span.last, without_row))
    return found


def _span(query: InstanceQuery, name: str, cluster: str, now: datetime) -> Span:
    first = query.start or datetime.min.replace(tzinfo=now.tzinfo)
    return Span(name, cluster, first, query.last or datetime.max.replace(tzinfo=now.tzinfo))


def _chosen(store: EntityStore, query: InstanceQuery) -> list[Workload]:
    named = store.workloads if query.name is None else store.workloads_named(query.name)
    if not named and query.name in store.feeds:
        raise UnknownEntityError(
            f"feed {query.name!r} is not replicated to a cluster: there are no instances to run; "
            f"{_makers(store, str(query.name))}its own instances: falcon instance list {query.name} --type feed"
        )
    if not named and query.name is not None and query.name not in store.processes:
        known = [*store.processes, *store.feeds]
        raise UnknownEntityError(f"there is no process or feed {query.name!r}{nearest(query.name, known)}")
    return [one for one in named if _fits(query, one.kind, one.cluster, one.name, one.entity.name)]


def _makers(store: EntityStore, feed: str) -> str:
    made_by = sorted({one.name for cluster in store.clusters for one in store.producers(feed, cluster)})
    return f"what makes it: process {', '.join(made_by)}; " if made_by else ""


def _fits(query: InstanceQuery, kind: str, cluster: str, name: str, *also: str) -> bool:
    return (
        query.cluster in (None, cluster)
        and (query.text or "").casefold() in name.casefold()
        and query.fits("entity", name, *also)
        and query.fits("kind", kind)
        and query.fits("cluster", cluster)
    )
