"""Collectors and coordinators in the foreground: one process that runs what is ready until nothing is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import FalconError, SettingsError
from falcon_assets.ledger import queries
from falcon_assets.ledger.locks import try_lock, unlock
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.process import Process
from falcon_assets.orchestration import run_tags
from falcon_assets.orchestration.collector import Collector
from falcon_assets.orchestration.coordinator import Coordinator, Outlook, PlannedRun, coordinator_lock
from falcon_assets.orchestration.dead_runs import DeadRuns
from falcon_assets.orchestration.deleted_runs import free_instances_of_deleted_runs
from falcon_assets.orchestration.late_arrival import LateArrival
from falcon_assets.orchestration.open_ledger import Ledger
from falcon_assets.orchestration.replication_work import Copying
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.planning.replication_process import input_cluster
from falcon_assets.settings import Settings

_PATIENCE_SECONDS = 30.0
"""How long a lock is waited for: a sensor holds it for the length of a tick."""
_COLLECT_SECONDS = 60.0
_POLL_SECONDS = 0.5
_ADMITTED_AT_ONCE = 1000


@dataclass(frozen=True)
class Display:
    """Whom to tell what goes on.

    Attributes:
        collected: Called with the number of instances that landed.
        started: Called with a run as it starts.
        progress: Called now and then with a run and how many of its instances are over.
        waits: Called with the time of the next retry.
        copying: Called now and then with the name of an instance that is copied and how far it is.
    """

    collected: Callable[[int], None]
    started: Callable[[PlannedRun], None]
    progress: Callable[[PlannedRun, int], None]
    waits: Callable[[datetime], None]
    copying: Copying


@dataclass(frozen=True)
class Trouble:
    """An instance that failed or timed out, and is not tried again."""

    process: str
    cluster: str
    nominal: datetime
    state: InstanceState
    reason: str


@dataclass(frozen=True)
class Outcome:
    """How it went.

    Attributes:
        outlook: The last look: what waits for what.
        succeeded: How many instances succeeded.
        trouble: Those that did not.
    """

    outlook: Outlook
    succeeded: int
    trouble: tuple[Trouble, ...]


@dataclass(frozen=True)
class Foreground:
    """Runs processes in this process, one Dagster run after the other, with one warm Spark session per cluster.

    Attributes:
        store: The entities.
        settings: The clock, and where everything lies.
        definitions: The code location.
        ledger: What is known.
        display: Whom to tell.
        prepare: Called with its cluster before a run starts; an error that it raises ends everything before that run.
    """

    store: EntityStore
    settings: Settings
    definitions: dg.Definitions
    ledger: Ledger
    display: Display
    prepare: Callable[[Cluster], None]

    def run(self, processes: Sequence[Process], until: datetime | None) -> Outcome:
        """Runs what is ready, and what becomes ready by that, retries included.

        It ends when nothing can run any more without new data.

        Raises:
            SettingsError: another ``falcon run`` works on one of the pipelines.
            FalconError: a process cannot be decided on, or a feed cannot be looked at.
        """
        used = {
            name
            for process in processes
            for one, _ in self.store.process_clusters(process)
            for name in (one.name, input_cluster(process, one.name))
        }
        clusters = [cluster for cluster in self.store.clusters.values() if cluster.name in used]
        collectors = [Collector(self.store, cluster, self.settings) for cluster in clusters]
        coordinator = Coordinator(self.store, self.settings, processes)
        late_arrival = LateArrival(self.store, self.settings, processes)
        touched: dict[tuple[str, str], set[datetime]] = {}
        with self._alone(sorted({process.pipelines[0] for process in processes})):
            DeadRuns(processes, foreground=True).end_all(self.ledger)
            free_instances_of_deleted_runs(self.ledger, self.store, self.settings, processes)
            # Once: what lands in the past while this goes on is found the next time.
            waited_for = coordinator.waited_for(self.ledger, until)
            while True:
                for collector in collectors:
                    own = {feed: span for (name, feed), span in waited_for.items() if name == collector.cluster.name}
                    self._collect(collector, own)
                waited_for = {}
                late_arrival.decide(self.ledger)
                outlook = coordinator.decide(self.ledger, until=until, budget=_ADMITTED_AT_ONCE)
                if outlook.problems:
                    raise FalconError("\n".join(f"{name}: {why}" for (name, _), why in outlook.problems.items()))
                for key, decision in outlook.decisions.items():
                    touched.setdefault(key, set()).update(nominal for nominal, _ in decision.timed_out)
                for run in outlook.runs:
                    touched[run.member.process.name, run.member.cluster.name].update(run.launch.nominals)
                    self._execute(run)
                if not outlook.runs and not self._wait_for_retry(outlook):
                    return self._outcome(outlook, touched)

    def _outcome(self, outlook: Outlook, touched: Mapping[tuple[str, str], Set[datetime]]) -> Outcome:
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
                    trouble.append(Trouble(process, cluster, nominal, record.state, record.reason))
        return Outcome(outlook, succeeded, tuple(trouble))

    def _collect(self, collector: Collector, waited_for: Mapping[str, tuple[datetime, datetime]]) -> None:
        left = True
        while left:
            found = collector.collect(self.ledger, _COLLECT_SECONDS, waited_for)
            if found.problems:
                raise FalconError("\n".join(f"{feed}: {why}" for feed, why in found.problems.items()))
            self.display.collected(found.recorded)
            left = bool(found.left)

    def _execute(self, run: PlannedRun) -> None:
        """One Dagster run in this process; that instances of it fail is for the ledger to say.

        Raises:
            KeyboardInterrupt: somebody pressed Ctrl-C; what was finished is recorded.
        """
        job = self.definitions.resolve_job_def(run.job_name)
        tags = {**run.tags, run_tags.FOREGROUND: "true", "dagster/run_key": run.run_key}
        self.display.started(run)
        self.prepare(run.member.cluster)
        quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
        with self._watched(run):
            try:
                # Without raise_on_error Dagster would keep an interruption to itself.
                job.execute_in_process(instance=self.ledger.instance, tags=tags, run_config=quiet, raise_on_error=True)
            except dg.DagsterExecutionInterruptedError:
                raise KeyboardInterrupt from None
            except (dg.Failure, dg.DagsterError):
                pass  # recorded, instance by instance

    @contextmanager
    def _watched(self, run: PlannedRun) -> Iterator[None]:
        """Tells the display how many instances are over, while the run goes on in this thread."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(_POLL_SECONDS):
                self.display.progress(run, self._count_over(run))

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
        self.display.progress(run, self._count_over(run))

    def _count_over(self, run: PlannedRun) -> int:
        self.ledger.catch_up()
        filters = dg.RunsFilter(tags={"dagster/run_key": run.run_key})
        found = self.ledger.instance.get_runs(filters, limit=1)
        if not found:
            return 0
        with self.ledger.engine.connect() as connection:
            states = queries.counts(connection, found[0].run_id)
        return sum(count for state, count in states.items() if state is not InstanceState.RUNNING)

    def _wait_for_retry(self, outlook: Outlook) -> bool:
        """Waits until a failed instance may be tried again; False where none will be, or the clock is frozen."""
        retries = [decision.retry_at for decision in outlook.decisions.values() if decision.retry_at]
        clock = self.settings.clock
        if not retries or (clock.origin is not None and not clock.runs):
            return False
        self.display.waits(min(retries))
        # In short steps: the falcon clock may run faster than the real one, or be set anew for all processes.
        while self.settings.now() < min(retries):
            time.sleep(_POLL_SECONDS)
        return True

    @contextmanager
    def _alone(self, pipelines: Sequence[str]) -> Iterator[None]:
        """Holds the pipelines' locks, so that neither a sensor nor another ``falcon run`` starts runs for them."""
        give_up = time.monotonic() + _PATIENCE_SECONDS
        with ExitStack() as stack:
            connection = stack.enter_context(self.ledger.engine.connect())
            for pipeline in pipelines:
                name = coordinator_lock(pipeline)
                while not try_lock(connection, name):
                    if time.monotonic() > give_up:
                        raise SettingsError(f"another falcon run is working on the pipeline {pipeline!r}: wait for it")
                    # Asked for again and again: a statement that waits for a lock could not be given up in time.
                    time.sleep(_POLL_SECONDS)
                stack.callback(unlock, connection, name)
            connection.commit()
            yield
