"""Coordinators: which runs to start now, from the entities, the ledger and the clock."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import dagster as dg
from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import FalconError
from falcon_assets.ledger import queries
from falcon_assets.ledger.status import EntityStatus, Status, statuses
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.expression import Kind
from falcon_assets.model.instant import format_instant
from falcon_assets.model.process import Input, Process
from falcon_assets.orchestration import names, run_tags
from falcon_assets.orchestration.cluster_reruns import ClusterReruns, look_at_reruns
from falcon_assets.orchestration.event_metadata import instance_state
from falcon_assets.orchestration.open_ledger import Ledger
from falcon_assets.orchestration.partitions import key_of
from falcon_assets.planning.coordination import Decision, Launch, Situation, decide
from falcon_assets.planning.expression_bounds import expression_bounds
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState
from falcon_assets.planning.process_partitions import ProcessPartitions, process_partitions
from falcon_assets.planning.readiness import Readiness
from falcon_assets.planning.timeline import Timeline, feed_timeline
from falcon_assets.settings import Settings

_UNFINISHED = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


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
        """The process and its timeline in words: another frequency or validity is looked at from its start."""
        line = self.timeline
        text = f"{line.frequency} {line.timezone} {format_instant(line.start)} {format_instant(line.end)}"
        return self.process.name, text


@dataclass(frozen=True)
class PlannedRun:
    """A run to start."""

    member: Member
    launch: Launch
    run_key: str
    tags: Mapping[str, str]

    @property
    def job_name(self) -> str:
        """Its job."""
        return names.job_name(self.member.cluster.name, self.member.process.name)


@dataclass(frozen=True)
class Outlook:
    """What a coordinator decided.

    Attributes:
        runs: Runs to start now.
        decisions: What was decided about each process, by (process, cluster).
        problems: Processes that could not be decided on, and why.
    """

    runs: tuple[PlannedRun, ...]
    decisions: Mapping[tuple[str, str], Decision]
    problems: Mapping[tuple[str, str], str]


@dataclass(frozen=True)
class Coordinator:
    """Decides for some processes, on all their clusters of this code location.

    Attributes:
        store: The entities.
        settings: The clock, and who runs this.
        processes: The processes to decide on.
    """

    store: EntityStore
    settings: Settings
    processes: Sequence[Process]
    _members: dict[str, list[Member]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Prepares what does not change from look to look."""
        for process in self.processes:
            for cluster, _ in self.store.process_clusters(process):
                partitions = process_partitions(process, cluster.name, self.store.feeds)
                readiness = Readiness(process, cluster.name, self.store.feeds)
                self._members.setdefault(cluster.name, []).append(Member(process, cluster, partitions, readiness))

    def decide(self, ledger: Ledger, *, until: datetime | None = None, budget: int = 1000) -> Outlook:
        """Looks at everything that is due, records what timed out or is skipped, and says which runs to start.

        Args:
            ledger: Is brought up to date first.
            until: No instance after it is due.
            budget: How many instances may be admitted at most.

        The caller must be the only one that starts runs for these processes (see the pipeline's lock), and start them
        before it asks again.
        """
        ledger.catch_up()
        now = self.settings.now()
        unfinished = ledger.instance.get_runs(dg.RunsFilter(statuses=_UNFINISHED))
        runs: list[PlannedRun] = []
        decisions: dict[tuple[str, str], Decision] = {}
        problems: dict[tuple[str, str], str] = {}
        with ledger.engine.begin() as connection:
            status = statuses(connection, self.processes, now)
        for cluster, members in self._members.items():
            with ledger.engine.begin() as connection:
                reruns = look_at_reruns(connection, self.store, cluster, [one.process.name for one in members])
                look = _Look(connection, cluster, members, status, unfinished, now, until, reruns)
                for member in members:
                    key = (member.process.name, cluster)
                    try:
                        situation = look.situation(member, budget)
                        decisions[key] = decision = decide(situation)
                    except FalconError as error:
                        problems[key] = str(error)
                        continue
                    budget -= sum(len(launch.nominals) for launch in decision.launches)
                    runs += (self._planned(member, launch, situation.records) for launch in decision.launches)
                look.remember(decisions)
            for member in members:
                if (member.process.name, cluster) in decisions:
                    decision = decisions[member.process.name, cluster]
                    self._record(ledger.instance, member, decision, now)
        return Outlook(tuple(runs), decisions, problems)

    def _planned(self, member: Member, launch: Launch, records: Mapping[datetime, InstanceRecord]) -> PlannedRun:
        process, cluster = member.process.name, member.cluster.name
        attempts = [records[one].attempt + 1 if one in records else 1 for one in launch.nominals]
        said = f"attempt {attempts[0]}" if len(set(attempts)) == 1 else f"attempts {_digest(attempts)}"
        times = " to ".join(map(format_instant, dict.fromkeys((launch.nominals[0], launch.nominals[-1]))))
        tags = run_tags.launch_tags(process, cluster, member.partitions, launch, self.settings.clock.tag)
        tags[run_tags.ATTEMPTS] = " ".join(map(str, attempts))
        return PlannedRun(member, launch, f"{process} on {cluster}, {times}, {said}", tags)

    def _record(self, instance: dg.DagsterInstance, member: Member, decision: Decision, now: datetime) -> None:
        """Instances that will not run by themselves any more, as events: the ledger has them from there."""
        key = names.asset_key(member.cluster.name, member.process.outputs[0].feed)
        ended = [(InstanceState.TIMED_OUT, decision.timed_out), (InstanceState.SKIPPED, decision.skipped)]
        for state, instances in ended:
            for nominal, reason in instances:
                partition = key_of(member.partitions.timeline, member.partitions.partition_of(nominal))
                event = instance_state(key, partition, member.process.name, nominal, state, now, reason)
                instance.report_runless_asset_event(event)


class _Look:
    """One look at the processes of a cluster: a few statements for all of them."""

    def __init__(
        self,
        connection: Connection,
        cluster: str,
        members: Collection[Member],
        status: Mapping[tuple[str, str], EntityStatus],
        unfinished: Collection[dg.DagsterRun],
        now: datetime,
        until: datetime | None,
        reruns: ClusterReruns,
    ) -> None:
        self._connection, self._cluster, self._status, self._now, self._until = connection, cluster, status, now, until
        self._progress = queries.progress(connection, cluster)
        self._first = {one.process.name: self._first_open(one) for one in members}
        self._members = {one.process.name: one for one in members}
        self._reruns = reruns
        retries = [one.process for one in members if one.process.retry.policy != "final"]
        attempts = {process.name: process.retry.attempts for process in retries}
        found = queries.records(connection, cluster, self._first, attempts)
        self._records = {name: {**reruns.records.get(name, {}), **records} for name, records in found.items()}
        self._available = queries.available(connection, self._spans(members, self._first, self._horizon))
        for key, more in queries.available(connection, self._earlier_spans(members)).items():
            self._available.setdefault(key, set()).update(more)
        self._runs: dict[str, list[dg.DagsterRun]] = {}
        for run in unfinished:
            if run.tags.get(run_tags.CLUSTER) == cluster and run_tags.NOMINAL_TIMES in run.tags:
                self._runs.setdefault(run.tags[run_tags.PROCESS], []).append(run)

    def situation(self, member: Member, budget: int) -> Situation:
        """What is known about the process."""
        process, timeline = member.process, member.timeline
        status = self._status[process.kind, process.name]
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
            slots_in_use=self._slots(process, records),
            available={one.feed: self._available.get((self._cluster, one.feed), set()) for one in process.inputs},
            budget=min(budget, 100) if budget > 0 else 0,
            requests=self._reruns.requests.get(process.name, {}),
            holds=self._reruns.holds,
        )

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
        granted = {run.run_id: int(run.tags.get(run_tags.SLOTS, 1)) for run in self._runs.get(process.name, ())}
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
                key = (self._cluster, one.feed)
                spans[key] = (min(spans[key][0], span[0]), max(spans[key][1], span[1])) if key in spans else span
        return spans

    def _span(self, member: Member, one: Input, first: datetime, last: datetime) -> tuple[datetime, datetime]:
        feed = feed_timeline(member.readiness.feeds[one.feed], self._cluster)
        if one.start.call.kind is Kind.INSTANCES:
            return feed.start, feed.end
        try:
            start = first + expression_bounds(one.start.call)[0] - 2 * feed.frequency.length
            return max(start, feed.start), min(last + expression_bounds(one.end.call)[1], feed.end)
        except OverflowError:
            return feed.start, feed.end


def _digest(attempts: Sequence[int]) -> str:
    return hashlib.blake2b(repr(attempts).encode(), digest_size=6).hexdigest()


def pipelines(store: EntityStore) -> dict[str, list[Process]]:
    """Pipeline -> its processes; a process of several pipelines is coordinated in its first one."""
    found: dict[str, list[Process]] = {}
    for process in store.processes.values():
        found.setdefault(process.pipelines[0], []).append(process)
    return found


def coordinator_lock(pipeline: str) -> str:
    """The name of the lock that whoever starts runs of the pipeline holds."""
    return f"falcon coordinator {pipeline}"
