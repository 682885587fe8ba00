"""Coordinators: decide from the entities, the ledger and the clock which runs to start now."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TypeAlias

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.status import statuses
from falcon_assets.errors import FalconError
from falcon_assets.history.dagster_internals.events import Batches, record_outside_runs
from falcon_assets.history.events.process_instances import InstanceChanged
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.mapping import run_tags
from falcon_assets.history.mapping.partitions import key_of
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.history.queries import Name
from falcon_assets.hooks import hooks, merged
from falcon_assets.instances.coordination.cluster_reruns import reruns_on
from falcon_assets.instances.coordination.cluster_snapshot import ClusterSnapshot
from falcon_assets.instances.coordination.executors import Executors
from falcon_assets.instances.coordination.input_gates import input_gates
from falcon_assets.instances.coordination.producer_situations import ProducerSituations
from falcon_assets.instances.coordination.queues import Queues
from falcon_assets.instances.rules.coordination import decide
from falcon_assets.instances.rules.readiness import Readiness
from falcon_assets.instances.rules.situation import Decision, Situation
from falcon_assets.instances.runs.dead_runs import DeadRuns, free_instances_of_deleted_runs, unfinished_runs
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState, Launch
from falcon_assets.planning.rollups import leaf_spans
from falcon_assets.planning.workloads import Workload
from falcon_assets.settings import Settings

Keep: TypeAlias = Callable[[Situation, Decision, Sequence[Situation]], None]


@dataclass(frozen=True)
class PlannedRun:
    workload: Workload
    launch: Launch
    run_key: str
    tags: Mapping[str, str]

    @property
    def job_name(self) -> str:
        return self.workload.job_name


@dataclass(frozen=True)
class Outlook:
    """Decisions by (name, cluster); ``problems`` has the workloads without one, ``dead`` the runs that were ended."""

    runs: tuple[PlannedRun, ...]
    decisions: Mapping[tuple[str, str], Decision]
    problems: Mapping[tuple[str, str], str]
    dead: tuple[str, ...] = ()


@dataclass(frozen=True)
class Coordinator:
    store: EntityStore
    settings: Settings
    workloads: Sequence[Workload]
    foreground: bool = False
    dead_runs: DeadRuns = field(init=False, repr=False)
    _members: dict[str, list[Readiness]] = field(default_factory=dict, init=False)
    refused: dict[tuple[str, str], str] = field(default_factory=dict, init=False)
    """Workloads that are never decided on, and why."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "dead_runs", DeadRuns(self.workloads, self.foreground))
        for workload in self.workloads:
            try:
                _ = workload.partitions
            except FalconError as error:
                self.refused[workload.name, workload.cluster] = str(error)
            else:
                self._members.setdefault(workload.cluster, []).append(Readiness(workload))

    def tick(
        self,
        ledger: Ledger,
        *,
        until: datetime | None = None,
        budget: int = 1000,
        without: Collection[str] = (),
    ) -> Outlook:
        """A tick of the pipeline's sensor, or of ``falcon run``: ends dead runs, frees their instances, and decides."""
        dead = self.dead_runs.end(ledger)
        free_instances_of_deleted_runs(ledger, self.settings.now(), self.workloads)
        return replace(self.decide(ledger, until=until, budget=budget, without=without), dead=dead)

    def decide(
        self,
        ledger: Ledger,
        *,
        until: datetime | None = None,
        budget: int = 1000,
        without: Collection[str] = (),
        only: Collection[Name] | None = None,
        keep: Keep = lambda situation, decision, producers: None,
    ) -> Outlook:
        """Decides on everything that is due, records what timed out or is skipped, and returns the runs to start.

        Brings the ledger up to date first. No instance after ``until`` is due, and at most ``budget`` are admitted. The
        caller must hold the pipeline's lock, and start the runs before it decides again.

        ``only`` has the workloads to decide on, None: all. ``keep`` is told each decision, with the situations of the
        producers that it depends on.
        """
        ledger.catch_up()
        now = self.settings.now()
        concerned = {
            cluster: [one for one in members if only is None or (one.workload.name, cluster) in only]
            for cluster, members in self._members.items()
            if cluster not in without
        }
        unfinished = unfinished_runs(ledger.instance)
        queues = Queues(self.settings.queues, self.store, [(one.job_name, one.tags) for one in unfinished])
        runs: list[PlannedRun] = []
        decisions: dict[tuple[str, str], Decision] = {}
        problems = dict(self.refused)
        with ledger.engine.begin() as connection:
            entities = [one.workload.entity for members in concerned.values() for one in members]
            status = statuses(connection, entities if only is not None else [one.entity for one in self.workloads], now)
        for cluster, members in concerned.items():
            if not members:
                continue
            with ledger.engine.begin() as connection:
                reruns = reruns_on(connection, self.store, cluster, [one.workload.name for one in members], now)
                producers = ProducerSituations(connection, self.store, unfinished, now, until)
                what = (connection, cluster, members, status, unfinished, now, until, reruns)
                gates = input_gates(connection, self.store, now)
                snapshot = ClusterSnapshot(*what, producers=producers.of, gates=gates)
                producers.add(snapshot, cluster, members)
                executors = Executors.alone(connection, self.store, cluster, datetime.now(UTC))
                for member in members:
                    workload = member.workload
                    key = (workload.name, cluster)
                    producers.asked.clear()
                    try:
                        room = (queues.admission(workload), executors.choice(workload))
                        situation = snapshot.situation(member, budget, *room)
                        decision = decide(situation)
                        priority = queues.priority(workload)
                        planned = [
                            self._planned(workload, one, situation.records, priority) for one in decision.launches
                        ]
                    except FalconError as error:
                        problems[key] = str(error)
                        continue
                    decisions[key] = decision
                    keep(situation, decision, [*producers.asked.values()])
                    runs += planned
                    queues.admit(workload, decision.launches)
                    executors.admit(workload, {one.run_key: (one.launch.executor, one.launch.slots) for one in planned})
                    executors.want(workload, decision)
                    budget -= sum(len(launch.nominals) for launch in decision.launches)
                snapshot.remember(decisions)
                executors.remember(connection)
            with Batches(record_outside_runs(ledger.instance)) as events:
                for member in members:
                    if (member.workload.name, cluster) in decisions:
                        decision = decisions[member.workload.name, cluster]
                        for event in self._events(ledger, member.workload, decision, now):
                            events.add(event)
        return Outlook(tuple(runs), decisions, problems)

    def waited_for(self, ledger: Ledger, until: datetime | None) -> dict[Name, tuple[datetime, datetime]]:
        """As :meth:`ClusterSnapshot.waited_for`, of feeds with data; brings the ledger up to date first."""
        ledger.catch_up()
        now = self.settings.now()
        spans: dict[Name, tuple[datetime, datetime]] = {}
        for cluster, members in self._members.items():
            with ledger.engine.begin() as connection:
                reruns = reruns_on(connection, self.store, cluster, [one.workload.name for one in members], now)
                snapshot = ClusterSnapshot(connection, cluster, members, {}, (), now, until, reruns)
            for (where, name), span in snapshot.waited_for().items():
                for leaf, first, last in leaf_spans(self.store.feeds[name], where, *span):
                    known = spans.get((where, leaf), (first, last))
                    spans[where, leaf] = min(first, known[0]), max(last, known[1])
        return spans

    def _planned(
        self, workload: Workload, launch: Launch, records: Mapping[datetime, InstanceRecord], priority: int
    ) -> PlannedRun:
        attempts = [records[one].attempt + 1 if one in records else 1 for one in launch.nominals]
        said = f"attempt {attempts[0]}" if len(set(attempts)) == 1 else f"attempts {_digest(attempts)}"
        times = " to ".join(map(format_instant, dict.fromkeys((launch.nominals[0], launch.nominals[-1]))))
        tags = run_tags.launch_tags(workload, launch, attempts, self.settings.clock.tag, priority)
        return PlannedRun(workload, launch, f"{workload.name} on {workload.cluster}, {times}, {said}", tags)

    def _events(
        self, ledger: Ledger, workload: Workload, decision: Decision, now: datetime
    ) -> Iterator[dg.AssetObservation]:
        """What timed out or is skipped: the ledger has it from these events."""
        if not (decision.timed_out or decision.skipped):
            return
        key = names.workload_keys(workload)[0]
        timed_out = (nominal for nominal, _ in decision.timed_out)
        asked = {"ledger": ledger, "store": self.store, "settings": self.settings}
        found = hooks().timeout_causes(**asked, workload=workload, nominals=[*timed_out])
        causes: dict[datetime, str] = merged(found)
        ended = [(InstanceState.TIMED_OUT, decision.timed_out), (InstanceState.SKIPPED, decision.skipped)]
        for state, instances in ended:
            for nominal, reason in instances:
                partition = key_of(workload.partitions.timeline, workload.partitions.partition_of(nominal))
                changed = InstanceChanged(
                    *(workload.name, workload.cluster, nominal, state, now, str(reason)),
                    reason_data=reason.as_data(),
                )
                yield changed.event(key, partition, causes.get(nominal))


def _digest(attempts: Sequence[int]) -> str:
    return hashlib.blake2b(repr(attempts).encode(), digest_size=6).hexdigest()


def pipelines(workloads: Iterable[Workload]) -> dict[str, list[Workload]]:
    """A workload of several pipelines is coordinated in its first one."""
    found: dict[str, list[Workload]] = {}
    for workload in workloads:
        found.setdefault(workload.pipelines[0], []).append(workload)
    return found
