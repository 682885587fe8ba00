"""How busy real Sparks say that they are: a standalone cluster, and a Connect server with its page."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from falcon_assets.compute.spark.endpoints.load import NoPageError, asked
from falcon_assets.compute.spark.sessions import own_application, session_for, stop_sessions
from falcon_assets.model.executor import ClusterExecutor
from falcon_assets.planning.executor_health import Answer, Load
from tests.processes import free_port
from tests.spark_servers import connect_server, standalone
from tests.waiting import wait_until

pytestmark = pytest.mark.soak


def test_a_master_knows_the_cores_of_applications_and_whether_there_is_a_worker(tmp_path: Path, working: str) -> None:
    ui = free_port()
    page = f"http://127.0.0.1:{ui}"
    with standalone(tmp_path, free_port(), ui) as (cluster, (_, worker)):
        executor = ClusterExecutor(name="east", endpoint=cluster.interfaces.execute.endpoint, ui=page)
        wait_until(lambda: asked(executor, (page,)) == Answer(load=Load(2, 2, 0)), 30, "both cores are free")
        stop_sessions()  # tests before this one may have left one
        assert own_application() == ""
        assert session_for(cluster, working).range(3).count() == 3
        mine = own_application()
        assert asked(executor, (page,)) == Answer(load=Load(cores=2, free=1, waiting=0))
        assert asked(executor, (page,), mine) == Answer(load=Load(cores=2, free=2, waiting=0))
        stop_sessions()
        assert own_application() == ""
        os.killpg(worker.pid, signal.SIGKILL)
        wait_until(lambda: asked(executor, (page,)).problem == "the Spark master has no worker", 90, "it is noticed")


def test_the_driver_of_a_connect_server_knows_its_cores(tmp_path: Path) -> None:
    ui = free_port()
    page = f"http://127.0.0.1:{ui}"
    confs = {"spark.ui.enabled": "true", "spark.ui.port": str(ui)}
    with connect_server(tmp_path, "with-page", confs) as cluster:
        executor = ClusterExecutor(name="east", endpoint=cluster.interfaces.execute.endpoint, ui=page)

        def answer() -> Answer | None:
            with suppress(NoPageError):  # the page comes after the server
                return asked(executor, (page,))
            return None

        assert wait_until(answer, 60, "the page answers") == Answer(load=Load(cores=2, free=2, waiting=0))
