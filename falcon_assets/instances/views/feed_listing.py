"""Instances of feeds in lists: data, copies, expiry, or why they are missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import ExpressionError
from falcon_assets.history.tables.row_values import FeedInstanceRow
from falcon_assets.hooks import hooks, merged
from falcon_assets.instances.store.consumed import versions_read
from falcon_assets.instances.store.instance_pages import Key
from falcon_assets.instances.store.process_rows import PROCESS_ROWS
from falcon_assets.instances.views.feed_writers import due_at, due_of_feed, writers_of
from falcon_assets.instances.views.query import FeedInstanceInfo, ReplicatedInstance
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.eviction import first_pass_over
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.instance_record import FeedState, InstanceState
from falcon_assets.planning.reasons import (
    NotCopied,
    NotLanded,
    NotRefreshedSince,
    NotWritten,
    OffTimeline,
    Reason,
    RemovedByRetention,
    TakenBack,
    TimePending,
)
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.planning.workloads import ReplicationWorkload


def feed_instances(
    installation: Installation,
    connection: Connection,
    store: EntityStore,
    found: Sequence[tuple[Key, FeedInstanceRow | None]],
    now: datetime,
) -> Iterator[FeedInstanceInfo]:
    """Takes a fixed number of statements for any number of instances."""
    everywhere = installation.all_entities
    copies = {key: list(_replications(everywhere, key)) for key, _ in found}
    wanted = {(one.name, one.cluster, key[2]) for key, ones in copies.items() for one in ones}
    records = PROCESS_ROWS.some(connection, wanted)
    versions = versions_read(connection, wanted)
    gone = [key for key, row in found if row is not None and row.state is FeedState.EVICTED]
    evictions: dict[Key, Reason] = merged(hooks().eviction_reasons(connection=connection, keys=gone))
    missing = _MissingReasons(connection, store, [key for key, row in found if row is None])
    taken_back = TakenBack().as_data()
    details: dict[Key, dict[str, Mapping[str, Any]]] = {}
    asked = {"connection": connection, "store": store, "keys": [key for key, _ in found], "now": now}
    for known in hooks().feed_instance_details(**asked):
        for key, more in known.items():
            details.setdefault(key, {}).update(more)

    def replicated(one: ReplicationWorkload, instance: datetime) -> ReplicatedInstance:
        key = (one.name, one.cluster, instance)
        state = records[key].state if key in records else InstanceState.WAITING
        return ReplicatedInstance(one.reads_on, one.cluster, state, versions.get(key))

    paths: dict[tuple[str, str], InstancePaths] = {}
    until: dict[tuple[str, str], datetime] = {}
    for key, row in found:
        name, cluster, instance = key
        feed = store.feed(name)
        if (name, cluster) not in paths:
            paths[name, cluster] = InstancePaths(feed, store.clusters[cluster])
            until[name, cluster] = due_of_feed(store, feed, cluster, now)[1]
        is_there = row is not None and row.state is FeedState.AVAILABLE
        state, reason, run, off = FeedState.MISSING, None, None, None
        if row is not None:
            state, run = row.state, row.run_id if is_there else row.evicted_by
            is_evicted = state is FeedState.EVICTED
            off = OffTimeline.of(feed_timeline(feed, cluster), instance) if is_there else None
            reason = (
                (off.as_data() if off else None)
                if is_there
                else evictions.get(key, RemovedByRetention("delete", "", None)).as_data()
                if is_evicted
                else taken_back
            )
        elif instance > until[name, cluster]:
            state, reason = FeedState.PENDING, TimePending(due_at(store, feed, cluster, instance)).as_data()
        else:
            reason = missing.of(key).as_data()
        yield FeedInstanceInfo(
            name,
            "feed",
            cluster,
            instance,
            state,
            reason,
            run=run,
            path=_path(paths[name, cluster], instance),
            stored=row,
            expires=first_pass_over(feed, cluster, instance, now) if is_there and not off else None,
            replications=tuple(replicated(one, instance) for one in copies[key]),
            details=details.get(key, {}),
        )


def _replications(everywhere: EntityStore, key: Key) -> Iterator[ReplicationWorkload]:
    name, cluster, instance = key
    feed = everywhere.feed(name)
    for entry in feed.clusters:
        for one in everywhere.replications_to(name, entry.name):
            if cluster in (one.reads_on, one.cluster) and one.timeline.contains(instance):
                yield one


def _path(paths: InstancePaths, instance: datetime) -> str | None:
    try:
        return f"{paths.root or ''}{paths.data(instance)}"
    except ExpressionError:
        return None


class _MissingReasons:
    """Reasons why instances of feeds are not there; reads the ledger for all at once."""

    def __init__(self, connection: Connection, store: EntityStore, missing: Sequence[Key]) -> None:
        self._store = store
        found = hooks().missing_reasons(connection=connection, store=store, keys=missing)
        self._known: dict[Key, Reason] = merged(found)
        self._makers = {key: self._maker(*key) for key in missing}
        self._records = PROCESS_ROWS.some(connection, {one for one in self._makers.values() if one})

    def of(self, key: Key) -> Reason:
        name, cluster = key[:2]
        feed, maker = self._store.feed(name), self._makers[key]
        record = self._records.get(maker) if maker else None
        state = (record.state if record else InstanceState.WAITING).value
        if producers := self._store.producers(name, cluster):
            nominal = maker[2] if maker else None
            return NotWritten(producers[0].name, nominal, state if maker else None)
        if maker:
            return NotCopied(maker[0], state)
        if key in self._known:
            return self._known[key]
        return NotRefreshedSince(key[2]) if feed.snapshot else NotLanded()

    def _maker(self, name: str, cluster: str, instance: datetime) -> Key | None:
        """Of several writers, the last."""
        writers = writers_of(self._store, self._store.feed(name), cluster, instance)
        return (writers[-1][0].name, cluster, writers[-1][1]) if writers else None
