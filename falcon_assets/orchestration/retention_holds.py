"""What keeps instances from going: the processes of a cluster that still need them, as the ledger knows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.ledger import queries, reruns
from falcon_assets.ledger.status import Status, statuses
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.expression import Kind
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process
from falcon_assets.orchestration.cluster_look import Member
from falcon_assets.orchestration.cluster_reruns import look_at_reruns
from falcon_assets.orchestration.late_inputs import late_inputs
from falcon_assets.planning.eviction import Hold
from falcon_assets.planning.instance_rules import is_alive
from falcon_assets.planning.process_partitions import process_partitions
from falcon_assets.planning.reader_holds import PendingInstances, reader_hold
from falcon_assets.planning.readiness import Readiness
from falcon_assets.planning.replication_hold import replication_hold
from falcon_assets.planning.replication_process import Replication, replications_to
from falcon_assets.planning.timeline import feed_timeline, process_timeline


class ClusterHolds:
    """One look at who reads what on a cluster: a few statements for all of its feeds.

    Args:
        connection: To the ledger, brought up to date; statuses that are new are written down with it.
        store: The entities.
        cluster: The cluster.
        now: The time.

    Raises:
        ExpressionError: an output of a rerun lies beyond the years 1 to 9999.
    """

    def __init__(self, connection: Connection, store: EntityStore, cluster: Cluster, now: datetime) -> None:
        self._connection, self._store, self._cluster, self._now = connection, store, cluster, now
        processes = [one for one in store.processes.values() if one.inputs and one.on(cluster.name)]
        self._status = statuses(connection, processes, now)
        self._progress = progress = queries.progress(connection, cluster.name)
        members = {process.name: self._member(process) for process in processes}
        first = {name: progress.get(one.progress_key, one.timeline.start) for name, one in members.items()}
        attempts = {one.name: one.retry.attempts for one in processes if one.retry.policy != "final"}
        records = queries.records(connection, cluster.name, first, attempts)
        asked = look_at_reruns(connection, store, cluster.name, (), now)
        changed = self._changed([one for one in processes if self._is_scheduled(one)], cluster.name)
        self._pending = {
            name: PendingInstances(
                member.process,
                member.timeline,
                now,
                first[name] if self._is_scheduled(member.process) else None,
                {**asked.records.get(name, {}), **records[name]},
                {*asked.requests.get(name, ()), *changed.get(name, ())},
            )
            for name, member in members.items()
        }

    def of(self, feed: Feed) -> list[Hold]:
        """Why instances of the feed must stay."""
        timeline = feed_timeline(feed, self._cluster.name)
        readers = [
            reader_hold(pending, one, timeline, self._available(feed) if one.start.call.kind is not Kind.TIME else ())
            for pending in self._pending.values()
            for one in pending.process.inputs
            if one.feed == feed.name
        ]
        return [*readers, *self._replication_holds(feed)]

    def of_copies(self, feed: Feed) -> list[Hold]:
        """Why what is staged of instances of the feed must stay: who needs them, and who is to copy them yet."""
        timeline = feed_timeline(feed, self._cluster.name)
        copying = [
            reader_hold(self._pending_copies(one, self._first_open(one)), one.inputs[0], timeline, ())
            for one in self._store.replications_to(feed.name, self._cluster.name)
        ]
        return [*copying, *self.of(feed)]

    def _first_open(self, replication: Replication) -> datetime:
        member = self._member(replication)
        return self._progress.get(member.progress_key, member.timeline.start)

    def _replication_holds(self, feed: Feed) -> Iterator[Hold]:
        entry = feed.on(self._cluster.name)
        if entry is None or entry.type != "source":
            return
        for target in feed.clusters:
            for one in replications_to(feed, target) if target.type == "target" else ():
                if one.source == self._cluster.name:
                    yield from self._replication_hold(feed, one)

    def _replication_hold(self, feed: Feed, replication: Replication) -> Iterator[Hold]:
        """What has never come to the target, and what is on its way there again."""
        target, timeline = replication.target, process_timeline(replication, replication.target)
        key = (target, feed.name)
        spans = {key: (timeline.start, timeline.end)}
        arrived = queries.available(self._connection, spans).get(key, set())
        gone = queries.evicted(self._connection, spans).get(key, {})
        yield replication_hold(target, timeline, {*arrived, *gone})
        yield reader_hold(self._pending_copies(replication, None), replication.inputs[0], timeline, ())

    def _pending_copies(self, replication: Replication, first_open: datetime | None) -> PendingInstances:
        """What is on its way to the target, and from ``first_open`` on what is to be."""
        target, timeline = replication.target, process_timeline(replication, replication.target)
        attempts = {replication.name: replication.retry.attempts} if first_open else {}
        asked = {replication.name: first_open or timeline.end}
        unfinished = queries.records(self._connection, target, asked, attempts)[replication.name]
        again = {
            one.nominal: one
            for one in reruns.requested(self._connection, target)
            if one.process == replication.name and is_alive(one.request, one.record, replication)
        }
        return PendingInstances(
            replication,
            timeline,
            self._now,
            first_open,
            {**unfinished, **{nominal: one.record for nominal, one in again.items()}},
            {*again, *self._changed([replication], target).get(replication.name, ())},
        )

    def _changed(self, processes: Sequence[Process], cluster: str) -> dict[str, set[datetime]]:
        """Process -> the instances whose late inputs changed: to be checked, and nobody said that it was too late."""
        late = [one for one in late_inputs(self._store, processes) if one[0] == cluster]
        found: dict[str, set[datetime]] = {}
        for name, _, nominal in reruns.changed(self._connection, late):
            found.setdefault(name, set()).add(nominal)
        return found

    def _member(self, process: Process) -> Member:
        partitions = process_partitions(process, self._cluster.name, self._store.feeds)
        return Member(process, self._cluster, partitions, Readiness(process, self._cluster.name, self._store.feeds))

    def _is_scheduled(self, process: Process) -> bool:
        """Whether its instances run by themselves, or will when it is resumed."""
        return self._status[process.kind, process.name].status is not Status.SUBMITTED

    def _available(self, feed: Feed) -> set[datetime]:
        timeline, key = feed_timeline(feed, self._cluster.name), (self._cluster.name, feed.name)
        return queries.available(self._connection, {key: (timeline.start, timeline.end)}).get(key, set())
