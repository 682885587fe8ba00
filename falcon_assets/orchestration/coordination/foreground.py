"""Collectors and coordinators in the foreground: one process that runs what is ready until nothing is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime

import dagster as dg
import sqlalchemy

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import FalconError, SettingsError, count_of
from falcon_assets.ledger import queries
from falcon_assets.ledger.locks import try_lock, unlock
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.process import Process
from falcon_assets.orchestration.coordination.collector import Collector
from falcon_assets.orchestration.coordination.coordinator import Coordinator, Outlook, PlannedRun, coordinator_lock
from falcon_assets.orchestration.coordination.late_arrival import LateArrival
from falcon_assets.orchestration.dagster_internals.runs import job_of
from falcon_assets.orchestration.dagster_internals.storage import DATABASE_ERRORS
from falcon_assets.orchestration.dagster_internals.tags import RUN_KEY
from falcon_assets.orchestration.mapping import run_tags
from falcon_assets.orchestration.platform.open_ledger import Ledger
from falcon_assets.orchestration.runs.dead_runs import DeadRuns
from falcon_assets.orchestration.runs.deleted_runs import free_instances_of_deleted_runs
from falcon_assets.orchestration.runs.replication_work import Copying
from falcon_assets.planning.instances.instance_record import InstanceState
from falcon_assets.planning.replication.replication_process import input_cluster
from falcon_assets.planning.time.clock import is_set_back
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
        left_out: What could not be looked at or worked with, and why, in the order in which that showed.
    """

    outlook: Outlook
    succeeded: int
    trouble: tuple[Trouble, ...]
    left_out: Mapping[str, str]

    @property
    def is_whole(self) -> bool:
        """Whether nothing failed and nothing was left out."""
        return not (self.trouble or self.left_out)


@dataclass(frozen=True)
class Foreground:
    """Runs processes in this process, one Dagster run after the other, with one warm Spark session per cluster.

    Attributes:
        store: The entities.
        settings: The clock, and where everything lies.
        definitions: The code location.
        ledger: What is known.
        display: Whom to tell.
        prepare: Called with its cluster before a run starts; where it raises an error, nothing runs on that cluster.
    """

    store: EntityStore
    settings: Settings
    definitions: dg.Definitions
    ledger: Ledger
    display: Display
    prepare: Callable[[Cluster], None]

    def run(self, processes: Sequence[Process], until: datetime | None) -> Outcome:
        """Runs what is ready, and what becomes ready by that, retries included.

        It ends when nothing can run any more without new data. What cannot be looked at, decided on or reached stops
        nothing else: it is in the outcome.

        Raises:
            SettingsError: another ``falcon run`` works on one of the pipelines.
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
        silent: dict[str, str] = {}
        with self._alone(sorted({process.pipelines[0] for process in processes})):
            DeadRuns(processes, foreground=True).end_all(self.ledger)
            free_instances_of_deleted_runs(self.ledger, self.store, self.settings, processes)
            # Once: what lands in the past while this goes on is found the next time.
            waited_for = coordinator.waited_for(self.ledger, until)
            while True:
                left_out: dict[str, str] = {}  # anew in every look: what answers again is in again
                for collector in collectors:
                    own = {feed: span for (name, feed), span in waited_for.items() if name == collector.cluster.name}
                    left_out |= self._collect(collector, own)
                waited_for = {}
                try:
                    late_arrival.decide(self.ledger)
                except FalconError as error:
                    left_out["late data"] = str(error)
                outlook = coordinator.decide(
                    self.ledger, until=until, budget=_ADMITTED_AT_ONCE, without=frozenset(silent)
                )
                left_out |= {f"{name} on {where}": why for (name, where), why in outlook.problems.items()}
                for key, decision in outlook.decisions.items():
                    touched.setdefault(key, set()).update(nominal for nominal, _ in decision.timed_out)
                runs = 0
                for run in outlook.runs:
                    cluster = run.member.cluster
                    if cluster.name not in silent:
                        try:
                            self.prepare(cluster)
                        except FalconError as error:
                            silent[cluster.name] = str(error)
                            continue
                        runs += 1
                        touched[run.member.process.name, cluster.name].update(run.launch.nominals)
                        self._execute(run)
                if not runs and not (outlook.runs and silent) and not self._wait_for_retry(outlook):
                    left_out |= {f"what runs on {cluster}": why for cluster, why in silent.items()}
                    return self._outcome(outlook, touched, left_out)

    def _outcome(
        self, outlook: Outlook, touched: Mapping[tuple[str, str], Set[datetime]], left_out: Mapping[str, str]
    ) -> Outcome:
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
        return Outcome(outlook, succeeded, tuple(trouble), left_out)

    def _collect(self, collector: Collector, waited_for: Mapping[str, tuple[datetime, datetime]]) -> dict[str, str]:
        """Looks for data on a cluster; what could not be looked at, and why."""
        where = collector.cluster.name
        problems: dict[str, str] = {}
        while True:
            try:
                found = collector.collect(self.ledger, _COLLECT_SECONDS, waited_for)
            except FalconError as error:
                return problems | {where: str(error)}
            problems |= {f"{feed} on {where}": why for feed, why in found.problems.items()}
            problems |= {
                f"a store of {count_of(feeds, 'feed')} on {where}": why for why, feeds in found.left_out.items()
            }
            self.display.collected(found.recorded)
            if not found.left:
                return problems
            if found.problems:  # or a store that answers nobody would have this time for each of its feeds
                rest = f"the rest of {where} ({count_of(found.left, 'feed')})"
                return problems | {rest: "there was no time for it"}

    def _execute(self, run: PlannedRun) -> None:
        """One Dagster run in this process; that instances of it fail is for the ledger to say.

        Raises:
            KeyboardInterrupt: somebody pressed Ctrl-C; what was finished is recorded.
        """
        job = job_of(self.definitions, run.job_name)
        tags = {**run.tags, run_tags.FOREGROUND: "true", RUN_KEY: run.run_key}
        self.display.started(run)
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
                with suppress(*DATABASE_ERRORS):  # the run itself says it when the database stays away
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
        filters = dg.RunsFilter(tags={RUN_KEY: run.run_key})
        found = self.ledger.instance.get_run_records(filters, limit=1)
        if not found:
            return 0
        with self.ledger.engine.connect() as connection:
            states = queries.counts(connection, found[0].dagster_run.run_id)
        return sum(count for state, count in states.items() if state is not InstanceState.RUNNING)

    def _wait_for_retry(self, outlook: Outlook) -> bool:
        """Waits until a failed instance may be tried again; False where none will be, or the clock is frozen."""
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

    @contextmanager
    def _alone(self, pipelines: Sequence[str]) -> Iterator[None]:
        """Holds the pipelines' locks, so that neither a sensor nor another ``falcon run`` starts runs for them."""
        give_up = time.monotonic() + _PATIENCE_SECONDS
        with self.ledger.engine.connect() as connection:
            try:
                for pipeline in pipelines:
                    while not try_lock(connection, coordinator_lock(pipeline)):
                        if time.monotonic() > give_up:
                            raise SettingsError(
                                f"another falcon run is working on the pipeline {pipeline!r}: wait for it"
                            )
                        # Asked for again and again: a statement that waits for a lock could not be given up in time.
                        time.sleep(_POLL_SECONDS)
                connection.commit()
                yield
            except BaseException:
                # Closes the session, and frees the locks with it: a silent server would be waited for to unlock them.
                connection.invalidate()
                raise
            with suppress(sqlalchemy.exc.DBAPIError):  # the session was lost in between, and the locks with it
                for pipeline in pipelines:
                    unlock(connection, coordinator_lock(pipeline))
