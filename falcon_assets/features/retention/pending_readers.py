"""Processes and targets that have yet to read instances of feeds, by the ledger."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import dagster as dg
from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.status import Status, statuses
from falcon_assets.features.retention.rules import PendingInstances, needed_by_readers
from falcon_assets.history import queries
from falcon_assets.instances.coordination.cluster_reruns import reruns_on
from falcon_assets.instances.coordination.cluster_snapshot import progress_key
from falcon_assets.instances.runs.dead_runs import asked_by_hand
from falcon_assets.instances.store import changed_inputs, reruns
from falcon_assets.instances.store.foreign_sources import copied_to
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Input
from falcon_assets.planning.input_windows import widest
from falcon_assets.planning.late_inputs import late_inputs
from falcon_assets.planning.reasons_to_keep import Need, needed_by_target
from falcon_assets.planning.retries import is_alive
from falcon_assets.planning.rollups import above, rollups_above
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.planning.workloads import ReplicationWorkload, Workload, replications_to


class _Sent(NamedTuple):
    target: str
    again: PendingInstances
    """Instances that are copied again."""
    came: Collection[datetime]
    """Instances that ever arrived at the target."""


class PendingReaders:
    """The pending readers of a cluster at one moment, by a few statements; new statuses are recorded.

    :meth:`of_copies` may be called only ``with_copies``; ``runs`` are unfinished.
    """

    def __init__(
        self,
        connection: Connection,
        store: EntityStore,
        cluster: Cluster,
        feeds: Iterable[Feed],
        now: datetime,
        *,
        with_copies: bool,
        runs: Sequence[dg.DagsterRun] = (),
    ) -> None:
        self._runs = runs
        self._connection, self._store, self._cluster, self._now = connection, store, cluster, now
        self._progress = queries.progress(connection, cluster.name)
        asked = {feed.name: feed for feed in feeds}
        self._made_of = rollups_above(store.rollups_on(cluster.name), cluster.name)
        asked |= {feed.name: feed for feed in above(asked, self._made_of)}
        self._readers = self._read(asked)
        self._to_read = self._available(asked)
        self._sent = self._sent_from_here(asked.values())
        self._brought = self._brought_here(asked) if with_copies else {}

    def of(self, feed: Feed, asked: Collection[datetime]) -> list[Need]:
        """Returns who needs instances of the feed, limited to ``asked``."""
        timeline, there = feed_timeline(feed, self._cluster.name), self._to_read.get(feed.name, set())
        readers = self._readers.get(feed.name, ())
        needs = [needed_by_readers(pending, one, timeline, there, asked) for pending, one in readers]
        for rollup, membership in self._made_of.get(feed.name, ()):
            needs += self._through(rollup, {one: membership.rollups(one) for one in asked})
        for target, again, came in self._sent.get(feed.name, ()):
            needs.append(needed_by_target(target, again.workload.timeline, came))
            needs.append(needed_by_readers(again, again.workload.inputs[0], again.workload.timeline, (), asked))
        return needs

    def _through(self, rollup: Feed, made: Mapping[datetime, Sequence[datetime]]) -> list[Need]:
        """Returns who needs instances by the roll-up's instances that they are in."""
        needs = self.of(rollup, {one for ones in made.values() for one in ones})

        def need(of: Need) -> Need:
            return lambda instance: next(filter(None, map(of, made.get(instance, ()))), None)

        return [need(one) for one in needs]

    def of_copies(self, feed: Feed, asked: Collection[datetime]) -> list[Need]:
        """Returns who needs staged instances of the feed, including replications that have yet to copy them."""
        timeline = feed_timeline(feed, self._cluster.name)
        brought = self._brought.get(feed.name, ())
        copying = [needed_by_readers(one, one.workload.inputs[0], timeline, (), asked) for one in brought]
        return [*copying, *self.of(feed, asked)]

    def _read(self, feeds: Container[str]) -> dict[str, list[tuple[PendingInstances, Input]]]:
        here = self._cluster.name
        there = [one for one in self._store.process_workloads if one.cluster == here]
        workloads = [one for one in there if any(declared.feed in feeds for declared in one.inputs)]
        status = statuses(self._connection, [one.entity for one in workloads], self._now)
        scheduled = {one.name for one in workloads if status["process", one.name].status is not Status.SUBMITTED}
        first = {one.name: self._first_open(one) for one in workloads}
        attempts = {one.name: one.retry.attempts for one in workloads if one.retry.policy != "final"}
        records = queries.records(self._connection, here, first, attempts)
        asked = reruns_on(self._connection, self._store, here, (), self._now)
        changed = self._changed([one for one in workloads if one.name in scheduled], here)
        found: dict[str, list[tuple[PendingInstances, Input]]] = {}
        for workload in workloads:
            name = workload.name
            pending = PendingInstances(
                workload,
                self._now,
                first[name] if name in scheduled else None,  # they run by themselves, or will when it is resumed
                {**asked.records.get(name, {}), **records[name]},
                {*asked.requests.get(name, ()), *changed.get(name, ())},
                asked_by_hand(self._runs, workload),
            )
            for one in workload.inputs:
                found.setdefault(one.feed, []).append((pending, one))
        return found

    def _available(self, feeds: Mapping[str, Feed]) -> dict[str, set[datetime]]:
        """Feed -> its available instances, if it is read by ``latest`` or ``future``."""
        spans = {}
        for name, readers in self._readers.items():
            if name in feeds and any(widest(one) is None for _, one in readers):
                timeline = feed_timeline(feeds[name], self._cluster.name)
                spans[self._cluster.name, name] = (timeline.start, timeline.end)
        return {name: there for (_, name), there in queries.available(self._connection, spans).items()}

    def _sent_from_here(self, feeds: Iterable[Feed]) -> dict[str, list[_Sent]]:
        here = self._cluster.name
        sources = [feed for feed in feeds if (entry := feed.on(here)) and entry.type == "source"]
        elsewhere = {one.name for feed in sources for one in feed.clusters} - self._store.clusters.keys()
        # Of a target whose installation has a database of its own it is never known here what it has copied.
        unknown = elsewhere - copied_to(self._connection, elsewhere, self._now)
        replications = [
            one
            for feed in sources
            for target in feed.clusters
            if target.type == "target" and target.name not in unknown
            for one in replications_to(feed, target)
            if one.reads_on == here
        ]
        ends = {(one.cluster, one.entity.name): (one.timeline.start, one.timeline.end) for one in replications}
        arrived, gone = queries.available(self._connection, ends), queries.evicted(self._connection, ends)
        found: dict[str, list[_Sent]] = {}
        for one, pending in self._pending_copies(replications, {}):
            key = (one.cluster, one.entity.name)
            came = {*arrived.get(key, ()), *gone.get(key, ())}
            found.setdefault(one.entity.name, []).append(_Sent(one.cluster, pending, came))
        return found

    def _brought_here(self, feeds: Iterable[str]) -> dict[str, list[PendingInstances]]:
        copying = [one for name in feeds for one in self._store.replications_to(name, self._cluster.name)]
        found: dict[str, list[PendingInstances]] = {}
        for one, pending in self._pending_copies(copying, {one.name: self._first_open(one) for one in copying}):
            found.setdefault(one.entity.name, []).append(pending)
        return found

    def _pending_copies(
        self, replications: Iterable[ReplicationWorkload], first_open: Mapping[str, datetime]
    ) -> Iterator[tuple[ReplicationWorkload, PendingInstances]]:
        """Yields running copies to targets, and those due from ``first_open`` on, by the name of the replication."""
        for target, alike in groupby(sorted(replications, key=attrgetter("cluster")), attrgetter("cluster")):
            ours = list(alike)
            attempts = {one.name: one.retry.attempts for one in ours if one.name in first_open}
            asked = {one.name: first_open.get(one.name, one.timeline.end) for one in ours}
            unfinished = queries.records(self._connection, target, asked, attempts)
            requested = reruns.requested(self._connection, [target])
            changed = self._changed(ours, target)
            for one in ours:
                again = {
                    rerun.nominal: rerun.record
                    for rerun in requested
                    if rerun.process == one.name and is_alive(rerun.request, rerun.record, one.retry)
                }
                yield (
                    one,
                    PendingInstances(
                        one,
                        self._now,
                        first_open.get(one.name),
                        {**unfinished[one.name], **again},
                        {*again, *changed.get(one.name, ())},
                        asked_by_hand(self._runs, one),
                    ),
                )

    def _changed(self, workloads: Iterable[Workload], cluster: str) -> dict[str, set[datetime]]:
        """Workload -> instances with changed late inputs, to be checked and not yet too late."""
        late = late_inputs(workloads) if cluster in self._store.clusters else {}
        found: dict[str, set[datetime]] = {}
        for name, _, nominal in changed_inputs.changed(self._connection, late):
            found.setdefault(name, set()).add(nominal)
        return found

    def _first_open(self, workload: Workload) -> datetime:
        return self._progress.get(progress_key(workload), workload.timeline.start)
