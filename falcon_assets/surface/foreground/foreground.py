"""Collectors and coordinators in the foreground: one process that runs ready instances until there are none."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import FalconError, SettingsError, count_of
from falcon_assets.features.landing.collector import Collector
from falcon_assets.history import queries
from falcon_assets.history.mapping import run_tags
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.history.queries import Name
from falcon_assets.hooks import ForegroundStep, hooks
from falcon_assets.instances.coordination.coordinator import Coordinator, Outlook, pipelines
from falcon_assets.instances.coordination.pipeline_lock import pipelines_held
from falcon_assets.instances.outbox.recording import EventRecording
from falcon_assets.instances.rules.executors import ExecutorsStarting
from falcon_assets.instances.runs.dead_runs import free_instances_of_deleted_runs
from falcon_assets.instances.runs.run_definitions import DefinitionRecording
from falcon_assets.model.cluster import Cluster
from falcon_assets.planning.clock import is_set_back
from falcon_assets.planning.instance_record import InstanceState, KeyedInstance
from falcon_assets.planning.workloads import Workload
from falcon_assets.settings import Settings
from falcon_assets.surface.foreground.foreground_runs import Display, ForegroundRuns
from falcon_assets.surface.foreground.known_waits import WaitingWorkload, known_waits

_PATIENCE_SECONDS = 30.0
"""Time limit for locks: sensors hold them for the length of a tick."""
_COLLECT_SECONDS = 60.0
_POLL_SECONDS = 0.5
_START_SECONDS = 330.0
"""Time limit for executors that are being started, which have five minutes."""
_ADMITTED_AT_ONCE = 1000


@dataclass(frozen=True)
class ForegroundResult:
    """The outcome of ``falcon run``.

    Attributes:
        left_out: Data or work that failed, and why, in the order of its occurrence.
        waiting: Instances that wait, except for data that is left out or depends on it.
    """

    outlook: Outlook
    succeeded: int
    trouble: tuple[KeyedInstance, ...]
    left_out: Mapping[str, str]
    waiting: tuple[WaitingWorkload, ...] = ()

    @property
    def is_whole(self) -> bool:
        return not (self.trouble or self.left_out)


@dataclass(frozen=True)
class Foreground:
    """Runs workloads in this process, one Dagster run after the other, with one warm Spark session per cluster."""

    store: EntityStore
    settings: Settings
    definitions: dg.Definitions
    ledger: Ledger
    display: Display
    prepare: Callable[[Cluster], None]
    starting: list[float] = field(default_factory=list, init=False)

    def run(self, workloads: Sequence[Workload], until: datetime | None) -> ForegroundResult:
        """Runs ready instances, and those that become ready, with retries, until there are none without new data.

        Errors in reading, decisions and work do not stop the rest. Raises SettingsError if another ``falcon run`` works
        on one of the pipelines.
        """
        clusters = self._clusters_of(workloads)
        sources = {one.reads_on for one in workloads} & self.store.foreign_sources.keys()
        looked_at = [*clusters, *(self.store.everywhere[name] for name in sorted(sources))]
        collectors = [Collector(self.store, cluster, self.settings) for cluster in looked_at]
        coordinator = Coordinator(self.store, self.settings, workloads, foreground=True)
        own = {"store": self.store, "settings": self.settings}
        steps: list[ForegroundStep] = hooks().foreground_steps(**own, workloads=workloads, clusters=clusters)
        touched: defaultdict[tuple[str, str], set[datetime]] = defaultdict(set)
        runs = ForegroundRuns(self.definitions, self.ledger, self.display, self._prepare)
        with pipelines_held(self.ledger, sorted(pipelines(workloads)), _PATIENCE_SECONDS) as busy:
            if busy:
                raise SettingsError(f"another falcon run is working on the pipeline {busy!r}: wait for it")
            DefinitionRecording(self.store.root, self.settings).record(self.ledger)
            # The daemon delivers; where it never ran, events would be lost.
            EventRecording(self.store, self.settings).begin(self.ledger, datetime.now(UTC))
            self._add_failed(touched, coordinator.dead_runs.end_all(self.ledger))
            free_instances_of_deleted_runs(self.ledger, self.settings.now(), workloads)
            # Once: what lands in the past while this goes on is found the next time.
            waited_for = coordinator.waited_for(self.ledger, until)
            while True:
                # Anew: what answers again is in again.
                left_out, unread = self._collect_all(collectors, waited_for)
                waited_for = {}
                for step in steps:
                    left_out |= step.step(self.ledger)
                outlook = coordinator.tick(
                    self.ledger, until=until, budget=_ADMITTED_AT_ONCE, without=runs.clusters.keys()
                )
                self._add_failed(touched, outlook.dead)
                left_out |= {f"{name} on {where}": why for (name, where), why in outlook.problems.items()}
                for key, decision in outlook.decisions.items():
                    touched[key].update(nominal for nominal, _ in decision.timed_out)
                planned = [run for run in outlook.runs if run.job_name not in runs.jobs]
                for run in planned:
                    if runs.execute(run):
                        touched[run.workload.name, run.workload.cluster].update(run.launch.nominals)
                if not planned and not (self._wait_for_executor(outlook) or self._wait_for_retry(outlook)):
                    found = self._outcome(outlook, touched, left_out | runs.left_out())
                    return replace(found, waiting=known_waits(workloads, outlook.decisions, unread))

    def _prepare(self, name: str) -> None:
        """Executors that coordinators choose are looked at by the runs themselves: there may be another one."""
        cluster = self.store.clusters[name]
        if not cluster.executors:
            self.prepare(cluster)

    def _add_failed(self, touched: Mapping[tuple[str, str], set[datetime]], run_ids: Sequence[str]) -> None:
        """Adds the instances, by workload and cluster, that failed when these dead runs were ended."""
        if not run_ids:
            return
        self.ledger.catch_up()
        for record in self.ledger.instance.get_run_records(dg.RunsFilter(run_ids=list(run_ids))):
            tags = record.dagster_run.tags
            if nominals := run_tags.nominals_of(tags):
                key = (tags[run_tags.PROCESS], tags[run_tags.CLUSTER])
                with self.ledger.engine.connect() as connection:
                    known = queries.some_records(connection, *key, nominals)
                touched[key].update(nominal for nominal, one in known.items() if one.state is InstanceState.FAILED)

    def _clusters_of(self, workloads: Sequence[Workload]) -> list[Cluster]:
        if len(workloads) == len(self.store.workloads):  # nothing is left out: also where data only lands
            return [*self.store.clusters.values()]
        used = {name for one in workloads for name in (one.cluster, one.reads_on)}
        return [cluster for cluster in self.store.clusters.values() if cluster.name in used]

    def _collect_all(
        self,
        collectors: Sequence[Collector],
        waited_for: Mapping[Name, tuple[datetime, datetime]],
    ) -> tuple[dict[str, str], set[Name]]:
        """Finds new data; returns the errors, and the feeds whose data is unknown."""
        left_out: dict[str, str] = {}
        unread = set[Name]()
        for collector in collectors:
            where = collector.cluster.name
            own = {feed: span for (name, feed), span in waited_for.items() if name == where}
            problems, feeds = self._collect(collector, own)
            left_out |= problems
            unread |= {(where, feed) for feed in feeds}
        return left_out, unread

    def _outcome(
        self, outlook: Outlook, touched: Mapping[tuple[str, str], Set[datetime]], left_out: Mapping[str, str]
    ) -> ForegroundResult:
        self.ledger.catch_up()
        succeeded, trouble = 0, []
        for (process, cluster), nominals in touched.items():
            with self.ledger.engine.connect() as connection:
                first = {process: min(nominals)} if nominals else {}
                records = queries.records(connection, cluster, first).get(process, {})
            for nominal in sorted(nominals):
                record = records[nominal]
                succeeded += record.state is InstanceState.SUCCEEDED
                if record.state in (InstanceState.FAILED, InstanceState.TIMED_OUT):
                    trouble.append(KeyedInstance(**vars(record), process=process, cluster=cluster))
        return ForegroundResult(outlook, succeeded, tuple(trouble), left_out)

    def _collect(
        self, collector: Collector, waited_for: Mapping[str, tuple[datetime, datetime]]
    ) -> tuple[dict[str, str], Set[str]]:
        where = collector.cluster.name
        problems: dict[str, str] = {}
        unread: Set[str] = collector.feeds.keys()
        while True:
            try:
                found = collector.collect(self.ledger, _COLLECT_SECONDS, waited_for)
            except FalconError as error:
                return problems | {where: str(error)}, unread
            problems |= {f"{feed} on {where}": why for feed, why in found.problems.items()}
            problems |= {
                f"a store of {count_of(feeds, 'feed')} on {where}": why for why, feeds in found.left_out.items()
            }
            self.display.collected(found.recorded)
            unread &= found.unread
            if not found.left:
                return problems, unread
            if found.problems:  # or a store that answers nobody would have this time for each of its feeds
                rest = f"the rest of {where} ({count_of(found.left, 'feed')})"
                return problems | {rest: "there was no time for it"}, unread

    def _wait_for_executor(self, outlook: Outlook) -> bool:
        """Waits a moment where an executor is started for something; False: none is, or it takes too long."""
        waiting = (reason for decision in outlook.decisions.values() for reason in decision.waiting.values())
        if not any(isinstance(reason, ExecutorsStarting) for reason in waiting):
            self.starting.clear()
            return False
        self.starting.append(time.monotonic())
        time.sleep(_POLL_SECONDS)
        return self.starting[-1] - self.starting[0] < _START_SECONDS

    def _wait_for_retry(self, outlook: Outlook) -> bool:
        """Waits until a failed instance may be retried; False: none will be, or the clock is frozen."""
        retries = [decision.retry_at for decision in outlook.decisions.values() if decision.retry_at]
        clock = self.settings.clock
        if not retries or (clock.origin is not None and not clock.runs):
            return False
        self.display.waits(min(retries))
        # In short steps: the falcon clock may run faster than the real one, or be set anew for all processes.
        began = self.settings.now()
        while (now := self.settings.now()) < min(retries) and not is_set_back(began, now):
            time.sleep(_POLL_SECONDS)
        return True
