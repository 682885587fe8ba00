"""The run launcher that ``dagster.yaml`` names: it forks run processes with all imports done."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess
from typing import Any

import dagster as dg
import psutil

from falcon_assets.catalog.watched_definitions import WatchedDefinitions
from falcon_assets.history.dagster_internals import runs
from falcon_assets.history.dagster_internals.launching import RunLauncher
from falcon_assets.history.dagster_internals.prompt_daemon import look_at_queue
from falcon_assets.history.dagster_internals.storage import DATABASE_ERRORS
from falcon_assets.history.platform.interrupted_runs import cut_off, interrupt
from falcon_assets.history.platform.run_worker import PRELOADED, work
from falcon_assets.history.platform.setup_fingerprint import SETUP, setup_fingerprint
from falcon_assets.settings import load_settings

_POLL_SECONDS = 1.0
_SOCKET = b"/pymp-xxxxxxxx/listener-xxxxxxxx"
"""Where multiprocessing puts it, below the folder for temporary files."""
_LONGEST_SOCKET = 103
"""Bytes of its path: a few more on Linux."""
_STOP_SECONDS = 20.0
_BROKEN = "the entity definitions were changed and have problems now, which falcon validate shows"
_ENDED = (dg.DagsterRunStatus.CANCELING, dg.DagsterRunStatus.CANCELED, dg.DagsterRunStatus.FAILURE)
_OVER = (dg.DagsterRunStatus.CANCELED, dg.DagsterRunStatus.FAILURE)


@dataclass(frozen=True)
class _RunWorker:
    process: ForkServerProcess
    watcher: threading.Thread


class WarmRunLauncher(RunLauncher):
    """Forks the process of a run from a server that has imported Dagster, Spark's client and this package.

    Dagster's own launcher starts every run in a new interpreter, which imports for four seconds. The server starts
    with the first run and ends with the daemon, as do the workers, each of which executes one run. Runs of other code
    locations, or of one with other settings or another environment than the daemon, are left to Dagster's own launcher.
    """

    def __init__(self, inst_data: Any = None) -> None:
        super().__init__(inst_data)
        self._workers: dict[str, _RunWorker] = {}
        self._lock = threading.Lock()
        self._context = multiprocessing.get_context("forkserver")
        self._definitions = WatchedDefinitions(load_settings().entity_defs, are_loaded=False)

    def takes(self, location: Mapping[str, Any]) -> bool:
        if len(os.fsencode(tempfile.gettempdir()) + _SOCKET) > _LONGEST_SOCKET:
            return False  # TMPDIR is too long a path for the socket of the server
        return bool(location.get(SETUP) == setup_fingerprint(load_settings()))

    def start(self, run_id: str, arguments: str) -> None:
        """Starts the run's process, and does not wait until it is up.

        A run that was queued when the definitions were broken could not load them: it is interrupted instead, so that
        its instances go on, without having failed, once the definitions are fixed.
        """
        if self._definitions.problem() is not None:
            interrupt(self.instance, run_id, _BROKEN)
            if (run := self.instance.get_run_by_id(run_id)) is not None:
                runs.end_as_canceled(self.instance, run)
            return
        process = self._context.Process(target=work, args=(arguments,), name=f"run {run_id}")
        watcher = threading.Thread(target=self._watch, args=(run_id, process), name=process.name, daemon=True)
        with self._lock:  # start() reaps the other processes too
            self._context.set_forkserver_preload(list(PRELOADED))
            process.start()
            self._workers[run_id] = _RunWorker(process, watcher)
        watcher.start()

    def terminate(self, run_id: str) -> bool:
        run = self.instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            return False
        if self.is_followed_by_dagster(run):
            return bool(super().terminate(run_id))  # type: ignore[no-untyped-call]  # Dagster's has no annotations
        runs.ask_to_stop(self.instance, run)
        return True

    def dispose(self) -> None:
        """Stops the workers, because the daemon ends; their runs are cancelled, their instances go on in later runs."""
        with self._lock:
            workers = list(self._workers.values())
            run_ids = list(self._workers)
        for run_id in run_ids:
            with suppress(*DATABASE_ERRORS):  # it says so itself, if it can
                interrupt(self.instance, run_id, "Dagster's daemon was asked to end")
        for stop in (ForkServerProcess.terminate, ForkServerProcess.kill):
            for worker in workers:
                stop(worker.process)
            give_up = time.monotonic() + _STOP_SECONDS
            for worker in workers:
                worker.watcher.join(max(0.0, give_up - time.monotonic()))

    def _watch(self, run_id: str, process: ForkServerProcess) -> None:
        asked: float | None = None
        with suppress(psutil.NoSuchProcess):
            worker = psutil.Process(process.pid)
            while not wait([process.sentinel], _POLL_SECONDS):
                if asked is None and self._status(run_id) in _ENDED:
                    process.terminate()
                    asked = time.monotonic()
                if asked is not None and time.monotonic() - asked > _STOP_SECONDS and self._status(run_id) in _OVER:
                    worker.kill()  # it hangs or was stopped, and keeps what its successor is to write
            worker.kill()  # lives on only where the server died, and nobody would follow it any more
        with self._lock:
            process.join()
            del self._workers[run_id]
        look_at_queue()
        run = self.instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            return
        if run.status is dg.DagsterRunStatus.CANCELING:
            runs.end_as_canceled(self.instance, run)
            return
        why = f"its process ended with exit code {process.exitcode}"
        if (process.exitcode or 0) < 0:  # somebody killed it: what it computed, or the machine when memory was short
            cut_off(self.instance, run, f"{why} ({_signal(-(process.exitcode or 0))})")
        else:
            runs.end_as_failed(self.instance, run, why)

    def _status(self, run_id: str) -> dg.DagsterRunStatus | None:
        try:
            run = self.instance.get_run_by_id(run_id)
        except DATABASE_ERRORS:
            return None  # PostgreSQL restarts
        return run.status if run else None


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
