"""Planned runs that this process executes itself, one after the other."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime

import dagster as dg

from falcon_assets.base.texts import hidden, recorded
from falcon_assets.errors import FalconError
from falcon_assets.features.replication.run import Copying
from falcon_assets.history import queries
from falcon_assets.history.dagster_internals.runs import end_as_failed, job_of
from falcon_assets.history.dagster_internals.storage import DATABASE_ERRORS
from falcon_assets.history.dagster_internals.tags import RUN_KEY
from falcon_assets.history.mapping import run_tags
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.instances.coordination.coordinator import PlannedRun
from falcon_assets.planning.instance_record import InstanceState

_POLL_SECONDS, _LONGEST_PAUSE = 0.5, 5.0
_PAUSE_TIMES = 10
"""The pause between polls is as many times what one takes: each is done beside the run's own threads."""


@dataclass(frozen=True)
class Display:
    """Callbacks for progress; ``collected`` and ``progress`` receive numbers of landed and finished instances."""

    collected: Callable[[int], None]
    started: Callable[[PlannedRun], None]
    progress: Callable[[PlannedRun, int], None]
    waits: Callable[[datetime], None]
    copying: Copying


@dataclass(frozen=True)
class ForegroundRuns:
    """Executes planned runs, and does not retry ``clusters`` and ``jobs`` that failed to start.

    ``prepare`` is called with the cluster's name before a run; if it raises a FalconError, nothing runs there.
    """

    definitions: dg.Definitions
    ledger: Ledger
    display: Display
    prepare: Callable[[str], None]
    clusters: dict[str, str] = field(default_factory=dict, init=False)
    jobs: dict[str, str] = field(default_factory=dict, init=False)

    def execute(self, run: PlannedRun) -> bool:
        """Executes a Dagster run in this process; returns whether there was one. Failed instances are in the ledger.

        An unexpected error fails the run, and with it its instances; the traceback is on standard error. If it leaves
        no run, its job would be started again and again: so the job is left out.

        Raises:
            KeyboardInterrupt: the user pressed Ctrl-C; finished work is recorded.
            DATABASE_ERRORS: the run cannot be recorded.
        """
        if not self._is_usable(run):
            return False
        tags = {**run.tags, run_tags.FOREGROUND: "true", RUN_KEY: run.run_key}
        self.display.started(run)
        quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
        with self._watched(run):
            try:
                job = job_of(self.definitions, run.job_name)
                # Without raise_on_error Dagster would keep an interruption to itself.
                job.execute_in_process(instance=self.ledger.instance, tags=tags, run_config=quiet, raise_on_error=True)
            except dg.DagsterExecutionInterruptedError:
                raise KeyboardInterrupt from None
            except dg.Failure:
                pass  # recorded, instance by instance
            except DATABASE_ERRORS:
                raise
            except Exception as error:
                sys.stderr.write(hidden(traceback.format_exc()))
                why = recorded(f"{type(error).__name__}: {error}")
                found = self._run_of(run)
                if found is None:
                    self.jobs[run.job_name] = why
                elif not found.is_finished:
                    end_as_failed(self.ledger.instance, found, why)
        return run.job_name not in self.jobs

    def left_out(self) -> dict[str, str]:
        return {
            **{f"what runs on {cluster}": why for cluster, why in self.clusters.items()},
            **{f"the job {job}": f"it cannot be started ({why})" for job, why in self.jobs.items()},
        }

    def _is_usable(self, run: PlannedRun) -> bool:
        cluster = run.workload.cluster
        if cluster in self.clusters or run.job_name in self.jobs:
            return False
        try:
            self.prepare(cluster)
        except FalconError as error:
            self.clusters[cluster] = str(error)
            return False
        return True

    @contextmanager
    def _watched(self, run: PlannedRun) -> Iterator[None]:
        """Reports the number of finished instances, while the run is executed in this thread."""
        over = threading.Event()

        def watch() -> None:
            took = 0.0
            while not over.wait(min(max(_POLL_SECONDS, took * _PAUSE_TIMES), _LONGEST_PAUSE)):
                began = time.monotonic()
                with suppress(*DATABASE_ERRORS):  # the run itself says it when the database stays away
                    self.display.progress(run, self._count_over(run))
                took = time.monotonic() - began

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
        found = self._run_of(run)
        if found is None:
            return 0
        with self.ledger.engine.connect() as connection:
            states = queries.counts(connection, found.run_id)
        return sum(count for state, count in states.items() if state is not InstanceState.RUNNING)

    def _run_of(self, run: PlannedRun) -> dg.DagsterRun | None:
        filters = dg.RunsFilter(tags={RUN_KEY: run.run_key})
        found = self.ledger.instance.get_run_records(filters, limit=1)
        return found[0].dagster_run if found else None
