"""The state of the workloads of a cluster at a moment, in a few statements for all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from falcon_assets.entities.status import EntityStatus, Status
from falcon_assets.history import queries
from falcon_assets.history.mapping import run_tags
from falcon_assets.instances.coordination.cluster_reruns import ClusterReruns
from falcon_assets.instances.coordination.input_gates import InputGates, all_open
from falcon_assets.instances.rules.executors import ExecutorChoice
from falcon_assets.instances.rules.looks import Looks
from falcon_assets.instances.rules.pending_reruns import PendingReruns
from falcon_assets.instances.rules.producers import no_producers
from falcon_assets.instances.rules.queues import Admission
from falcon_assets.instances.rules.readiness import Readiness
from falcon_assets.instances.rules.situation import Decision, Situation, no_source
from falcon_assets.instances.store.consumed import last_used
from falcon_assets.instances.store.foreign_sources import ForeignSource, foreign_source
from falcon_assets.instances.store.newest_instances import newest_written
from falcon_assets.instances.store.process_rows import ended_since, looks_at, set_looks
from falcon_assets.model.instant import format_instant
from falcon_assets.model.process import Input
from falcon_assets.planning.expressions import expression_bounds
from falcon_assets.planning.input_windows import InstanceSet, widest
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState
from falcon_assets.planning.reasons import SeenSource
from falcon_assets.planning.retries import timeout_of
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.planning.workloads import LONGEST_RUN, Workload

if TYPE_CHECKING:
    import dagster as dg


_NOTHING = InstanceSet()
_NEVER_LOOKED = Looks()
_REMEMBERED = timedelta(days=400)
"""Instances that waited longer count from their own time."""
WRITTEN_AFTER = timedelta(minutes=1)
"""A look is not recorded again for this long: there are thousands of workloads, and pauses are longer."""


def progress_key(workload: Workload) -> tuple[str, str]:
    """Contains the timeline: another frequency or validity is decided from its start."""
    line = workload.timeline
    text = f"{line.frequency} {line.timezone} {format_instant(line.start)} {format_instant(line.end)}"
    return workload.name, text


class ClusterSnapshot:
    def __init__(
        self,
        connection: Connection,
        cluster: str,
        members: Collection[Readiness],
        status: Mapping[tuple[str, str], EntityStatus],
        unfinished: Collection[dg.DagsterRun],
        now: datetime,
        until: datetime | None,
        reruns: ClusterReruns,
        since: Mapping[str, datetime] | None = None,
        producers: Callable[[str, str], Sequence[Situation]] | None = None,
        gates: InputGates = all_open,
    ) -> None:
        """Reads the ledger.

        ``since`` maps workloads to the time before which no instance matters, None: settled ones do not; no instance
        after ``until`` matters. ``producers`` returns the situations of the workloads that write a feed on a cluster;
        None: unknown. ``gates`` says which instances must not be read by inputs that require valid data.
        """
        self._connection, self._cluster, self._status, self._now, self._until = connection, cluster, status, now, until
        self._horizon = min(now, until or now)
        workloads = [one.workload for one in members]
        names = [one.name for one in workloads]
        self._progress = queries.progress(connection, cluster, names)
        self._producers = producers
        self._looked = looks_at(connection, cluster, names)
        self._ended: dict[str, Mapping[datetime, tuple[datetime, InstanceState]]] = {}
        self._collected: dict[str, Mapping[str, datetime]] = {}
        self._sources: dict[str, ForeignSource | None] = {}
        self._first = {one.name: (since or {}).get(one.name) or self._first_open(one) for one in workloads}
        self._workloads = {one.name: one for one in workloads}
        self._reruns = reruns
        tried = [one for one in workloads if since is None and one.retry.policy != "final"]
        attempts = {one.name: one.retry.attempts for one in tried}
        found = queries.records(connection, cluster, self._first, attempts)
        self._records = {name: {**reruns.records.get(name, {}), **records} for name, records in found.items()}
        found_there: dict[queries.Name, set[datetime]] = {}
        self._evicted: dict[queries.Name, dict[datetime, datetime]] = {}
        for spans in (self._spans(workloads, self._first, self._horizon), self._earlier_spans(workloads)):
            for key, there in queries.available(connection, spans).items():
                found_there.setdefault(key, set()).update(there)
            for key, gone in queries.evicted(connection, spans).items():
                self._evicted.setdefault(key, {}).update(gone)
        self._gates = gates({(one.reads_on, read.feed) for one in workloads for read in one.gated})
        newer = {one.name: (one.reads_on, one.inputs) for one in workloads}
        self._last_used = last_used(connection, cluster, newer)
        self._written = newest_written(connection, workloads)
        self._available = {key: InstanceSet(there) for key, there in found_there.items()}
        self._runs: dict[str, list[dg.DagsterRun]] = {}
        for run in unfinished:
            if run.tags.get(run_tags.CLUSTER) == cluster and run_tags.nominals_of(run.tags):
                self._runs.setdefault(run.tags[run_tags.PROCESS], []).append(run)

    def situation(
        self,
        readiness: Readiness,
        budget: int,
        admission: Admission | None = None,
        executors: ExecutorChoice | None = None,
    ) -> Situation:
        workload = readiness.workload
        name, reads_on = workload.name, workload.reads_on
        status = self._status[workload.entity.kind, workload.entity.name]
        records = dict(self._records[name])
        for run in self._runs.get(name, ()):
            for nominal, attempt in zip_longest(run_tags.nominals_of(run.tags), run_tags.attempts_of(run.tags)):
                if nominal < self._first[name] and nominal not in records:
                    continue  # The run has finished it already, and has no slot for it.
                # A run that exists and has said nothing yet: its launcher was stopped in between.
                record = records.get(nominal) or InstanceRecord(nominal, InstanceState.WAITING)
                is_passed = attempt is not None and record.attempt >= attempt  # another run's, or a command's
                if not (record.in_flight or record.run_id == run.run_id or is_passed):
                    records[nominal] = replace(record, queued_run=run.run_id)
        return Situation(
            readiness=readiness,
            now=self._now,
            until=self._until,
            since=status.since if status.status is Status.RUNNING else None,
            first_open=workload.timeline.index_at_or_before(self._first[name]),
            records=records,
            slots_in_use=self._slots(workload, records),
            available={one.feed: self._available.get((reads_on, one.feed), _NOTHING) for one in workload.inputs},
            budget=max(min(budget, LONGEST_RUN), 0),
            requests=self._reruns.requests.get(name, {}),
            pending_reruns=self._reruns.pending.get(reads_on) or PendingReruns(),
            last_used=self._last_used.get(name, {}),
            newest_written=self._written if workload.replaces_earlier else {},
            admission=admission,
            executors=executors,
            is_suspended=status.status is Status.SUSPENDED,
            looks=self._looks(workload),
            collected=partial(self._collected_on, reads_on),
            seen_source=partial(self._seen_source, reads_on, workload.source_colo)
            if workload.source_colo
            else no_source,
            producers=partial(self._producers, reads_on) if self._producers else no_producers,
            ended=partial(self._end_of, name),
            gates={one.feed: self._gates.get((reads_on, one.feed), {}) for one in workload.gated}
            if self._gates
            else {},
            evicted={
                one.feed: self._evicted[reads_on, one.feed]
                for one in workload.inputs
                if (reads_on, one.feed) in self._evicted
            },
        )

    def waited_for(self) -> dict[queries.Name, tuple[datetime, datetime]]:
        """By (cluster, feed): the times between which availability matters to unsettled instances."""
        workloads = self._workloads.values()
        spans = self._spans(workloads, self._first, self._horizon)
        for key, (first, last) in self._earlier_spans(workloads).items():
            spans[key] = (min(first, spans[key][0]), max(last, spans[key][1])) if key in spans else (first, last)
        return spans

    def remember(self, decisions: Mapping[tuple[str, str], Decision]) -> None:
        """Records that all were looked at, and up to where everything is settled."""
        looks = {name: self._looks(workload) for name, workload in self._workloads.items()}
        set_looks(
            self._connection, self._cluster, {name: one for name, one in looks.items() if self._is_news(name, one)}
        )
        moved = {}
        for name, workload in self._workloads.items():
            decision = decisions.get((name, self._cluster))
            first = workload.timeline.instance(decision.first_open) if decision else self._first[name]
            if first > self._first[name]:
                moved[progress_key(workload)] = first
        queries.set_progress(self._connection, self._cluster, moved)

    def _looks(self, workload: Workload) -> Looks:
        return self._looked.get(workload.name, _NEVER_LOOKED).and_at(self._now, timeout_of(workload))

    def _is_news(self, name: str, looks: Looks) -> bool:
        known = self._looked.get(name, _NEVER_LOOKED)
        if known.last is None or looks.woke != known.woke:
            return True
        return not timedelta() <= self._now - known.last < WRITTEN_AFTER

    def _collected_on(self, cluster: str, feed: str) -> datetime | None:
        return self._last_collected(cluster).get(feed)

    def _last_collected(self, cluster: str) -> Mapping[str, datetime]:
        if cluster not in self._collected:
            self._collected[cluster] = queries.last_collected(self._connection, cluster)
        return self._collected[cluster]

    def _seen_source(self, cluster: str, colo: str, feed: str, instance: datetime | str) -> SeenSource | None:
        if cluster not in self._sources:
            self._sources[cluster] = foreign_source(self._connection, cluster, colo)
        source = self._sources[cluster]
        return source.seen(feed, instance if isinstance(instance, datetime) else None) if source else None

    def _end_of(self, name: str, nominal: datetime) -> tuple[datetime, InstanceState] | None:
        """Of instances that did not succeed, for the last 400 days; one query per workload."""
        if name not in self._ended:
            since = self._now - _REMEMBERED
            self._ended[name] = ended_since(self._connection, name, self._cluster, since)
        return self._ended[name].get(nominal)

    def _first_open(self, workload: Workload) -> datetime:
        return self._progress.get(progress_key(workload), workload.timeline.start)

    def _slots(self, workload: Workload, records: Mapping[datetime, InstanceRecord]) -> int:
        granted = {run.run_id: run_tags.slots_of(run.tags, 1) for run in self._runs.get(workload.name, ())}
        held = Counter(one.run or "" for one in records.values() if one.in_flight)
        return sum(min(count, granted.get(run_id, workload.parallel)) for run_id, count in held.items())

    def _earlier_spans(self, workloads: Collection[Workload]) -> dict[queries.Name, tuple[datetime, datetime]]:
        """For instances before the first open one that are pending again."""
        again = {
            name: [nominal for nominal in records if nominal < self._first[name]]
            for name, records in self._records.items()
        }
        first = {name: min(nominals) for name, nominals in again.items() if nominals}
        last = max((max(again[name]) for name in first), default=self._now)
        return self._spans([one for one in workloads if one.name in first], first, last)

    def _spans(
        self, workloads: Collection[Workload], first: Mapping[str, datetime], last: datetime
    ) -> dict[queries.Name, tuple[datetime, datetime]]:
        spans: dict[queries.Name, tuple[datetime, datetime]] = {}
        for workload in workloads:
            for one in workload.inputs:
                span = self._span(workload, one, first[workload.name], last)
                key = (workload.reads_on, one.feed)
                spans[key] = (min(spans[key][0], span[0]), max(spans[key][1], span[1])) if key in spans else span
        return spans

    def _span(self, workload: Workload, one: Input, first: datetime, last: datetime) -> tuple[datetime, datetime]:
        feed = feed_timeline(workload.feeds[one.feed], self._cluster)
        window = widest(one)
        if window is None:
            return feed.start, feed.end
        try:
            start = first + expression_bounds(window.start.call)[0] - 2 * feed.frequency.length
            return max(start, feed.start), min(last + expression_bounds(window.end.call)[1], feed.end)
        except OverflowError:
            return feed.start, feed.end
