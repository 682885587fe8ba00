"""What is known about the processes of a cluster at one moment: a few statements for all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import dagster as dg
from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.ledger import queries
from falcon_assets.ledger.status import EntityStatus, Status
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.instant import format_instant
from falcon_assets.model.process import Input, Process
from falcon_assets.orchestration.coordination.cluster_reruns import ClusterReruns
from falcon_assets.orchestration.mapping import run_tags
from falcon_assets.planning.instances.instance_record import InstanceRecord, InstanceState
from falcon_assets.planning.instances.process_partitions import ProcessPartitions
from falcon_assets.planning.replication.replication_process import input_cluster
from falcon_assets.planning.rules.pending_reruns import RerunHolds
from falcon_assets.planning.rules.readiness import Readiness
from falcon_assets.planning.rules.situation import Decision, Situation
from falcon_assets.planning.time.timeline import Timeline, feed_timeline
from falcon_assets.planning.windows.expression_bounds import expression_bounds
from falcon_assets.planning.windows.input_windows import widest
from falcon_assets.planning.windows.instance_set import InstanceSet

_NOTHING = InstanceSet()


@dataclass(frozen=True)
class Member:
    """A process on a cluster, as a coordinator keeps it."""

    process: Process
    cluster: Cluster
    partitions: ProcessPartitions
    readiness: Readiness

    @property
    def timeline(self) -> Timeline:
        """Its nominal times there."""
        return self.partitions.nominal

    @property
    def progress_key(self) -> tuple[str, str]:
        """What its progress is remembered by."""
        return progress_key(self.process, self.timeline)


def progress_key(process: Process, line: Timeline) -> tuple[str, str]:
    """The process and its timeline in words: another frequency or validity is looked at from its start."""
    text = f"{line.frequency} {line.timezone} {format_instant(line.start)} {format_instant(line.end)}"
    return process.name, text


class ClusterLook:
    """One look at the processes of a cluster."""

    def __init__(
        self,
        connection: Connection,
        store: EntityStore,
        cluster: str,
        members: Collection[Member],
        status: Mapping[tuple[str, str], EntityStatus],
        unfinished: Collection[dg.DagsterRun],
        now: datetime,
        until: datetime | None,
        reruns: ClusterReruns,
    ) -> None:
        self._connection, self._cluster, self._status, self._now, self._until = connection, cluster, status, now, until
        self._store = store
        self._progress = queries.progress(connection, cluster)
        self._first = {one.process.name: self._first_open(one) for one in members}
        self._members = {one.process.name: one for one in members}
        self._reruns = reruns
        retries = [one.process for one in members if one.process.retry.policy != "final"]
        attempts = {process.name: process.retry.attempts for process in retries}
        found = queries.records(connection, cluster, self._first, attempts)
        self._records = {name: {**reruns.records.get(name, {}), **records} for name, records in found.items()}
        found_there: dict[queries.Name, set[datetime]] = {}
        self._evicted: dict[queries.Name, dict[datetime, datetime]] = {}
        for spans in (self._spans(members, self._first, self._horizon), self._earlier_spans(members)):
            for key, there in queries.available(connection, spans).items():
                found_there.setdefault(key, set()).update(there)
            for key, gone in queries.evicted(connection, spans).items():
                self._evicted.setdefault(key, {}).update(gone)
        self._available = {key: InstanceSet(there) for key, there in found_there.items()}
        self._runs: dict[str, list[dg.DagsterRun]] = {}
        for run in unfinished:
            if run.tags.get(run_tags.CLUSTER) == cluster and run_tags.nominals_of(run.tags):
                self._runs.setdefault(run.tags[run_tags.PROCESS], []).append(run)

    def situation(self, member: Member, budget: int) -> Situation:
        """What is known about the process."""
        process, timeline = member.process, member.timeline
        entity, reads_on = self._store.scheduled_as(process), input_cluster(process, self._cluster)
        status = self._status[entity.kind, entity.name]
        records = dict(self._records[process.name])
        for run in self._runs.get(process.name, ()):
            for nominal in run_tags.nominals_of(run.tags):
                if nominal < self._first[process.name] and nominal not in records:
                    continue  # The run has finished it already, and does not hold a slot for it.
                # A run that exists and has said nothing yet: its launcher was stopped in between.
                record = records.get(nominal) or InstanceRecord(nominal, InstanceState.WAITING)
                if not (record.in_flight or record.run_id == run.run_id):
                    records[nominal] = replace(record, queued_run=run.run_id)
        return Situation(
            process=process,
            timeline=timeline,
            readiness=member.readiness,
            now=self._now,
            until=self._until,
            since=status.since if status.status is Status.RUNNING else None,
            first_open=timeline.index_at_or_before(self._first[process.name]),
            records=records,
            at_once=member.partitions.at_once,
            slots_in_use=self._slots(process, records),
            available={one.feed: self._available.get((reads_on, one.feed), _NOTHING) for one in process.inputs},
            budget=min(budget, 100) if budget > 0 else 0,
            requests=self._reruns.requests.get(process.name, {}),
            holds=self._reruns.holds.get(reads_on) or RerunHolds(),
            evicted={
                one.feed: self._evicted[reads_on, one.feed]
                for one in process.inputs
                if (reads_on, one.feed) in self._evicted
            },
        )

    def waited_for(self) -> dict[queries.Name, tuple[datetime, datetime]]:
        """(cluster, feed) -> between which times it matters to instances that are not settled what of it is there."""
        members = self._members.values()
        spans = self._spans(members, self._first, self._horizon)
        for key, (first, last) in self._earlier_spans(members).items():
            spans[key] = (min(first, spans[key][0]), max(last, spans[key][1])) if key in spans else (first, last)
        return spans

    def remember(self, decisions: Mapping[tuple[str, str], Decision]) -> None:
        """Writes down up to where everything is settled."""
        moved = {}
        for name, member in self._members.items():
            decision = decisions.get((name, self._cluster))
            first = member.timeline.instance(decision.first_open) if decision else self._first[name]
            if first > self._first[name]:
                moved[member.progress_key] = first
        queries.set_progress(self._connection, self._cluster, moved)

    def _first_open(self, member: Member) -> datetime:
        return self._progress.get(member.progress_key, member.timeline.start)

    def _slots(self, process: Process, records: Mapping[datetime, InstanceRecord]) -> int:
        granted = {run.run_id: run_tags.slots_of(run.tags, 1) for run in self._runs.get(process.name, ())}
        held = Counter(one.queued_run or one.run_id or "" for one in records.values() if one.in_flight)
        return sum(min(count, granted.get(run_id, process.parallel)) for run_id, count in held.items())

    @property
    def _horizon(self) -> datetime:
        return min(self._now, self._until or self._now)

    def _earlier_spans(self, members: Collection[Member]) -> dict[queries.Name, tuple[datetime, datetime]]:
        """The same for instances that are pending again before the first one that is open."""
        again = {
            name: [nominal for nominal in records if nominal < self._first[name]]
            for name, records in self._records.items()
        }
        first = {name: min(nominals) for name, nominals in again.items() if nominals}
        last = max((max(again[name]) for name in first), default=self._now)
        return self._spans([one for one in members if one.process.name in first], first, last)

    def _spans(
        self, members: Collection[Member], first: Mapping[str, datetime], last: datetime
    ) -> dict[queries.Name, tuple[datetime, datetime]]:
        """Between which times the availability of each input feed matters, for instances between two times."""
        spans: dict[queries.Name, tuple[datetime, datetime]] = {}
        for member in members:
            for one in member.process.inputs:
                span = self._span(member, one, first[member.process.name], last)
                key = (input_cluster(member.process, self._cluster), one.feed)
                spans[key] = (min(spans[key][0], span[0]), max(spans[key][1], span[1])) if key in spans else span
        return spans

    def _span(self, member: Member, one: Input, first: datetime, last: datetime) -> tuple[datetime, datetime]:
        feed = feed_timeline(member.readiness.feeds[one.feed], self._cluster)
        window = widest(one)
        if window is None:
            return feed.start, feed.end
        try:
            start = first + expression_bounds(window.start.call)[0] - 2 * feed.frequency.length
            return max(start, feed.start), min(last + expression_bounds(window.end.call)[1], feed.end)
        except OverflowError:
            return feed.start, feed.end
