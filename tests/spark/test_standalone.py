"""A standalone cluster that dies under a session."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from falcon_assets.compute.spark.sessions import isolated, session_for, stop_sessions
from falcon_assets.errors import WorkflowError
from tests.processes import free_port
from tests.spark_servers import standalone


@pytest.mark.soak
def test_what_would_wait_for_executors_for_ever_fails_in_a_sentence_and_the_next_one_runs(
    tmp_path: Path, working: str
) -> None:
    port = free_port()
    with standalone(tmp_path, port) as (cluster, processes):
        session = session_for(cluster, working)
        with isolated(session) as child:
            assert child.range(3).count() == 3
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
        with pytest.raises(WorkflowError) as gone, isolated(session) as child:
            child.range(3).count()
        assert (
            str(gone.value) == f"the Spark master at spark://127.0.0.1:{port} does not answer any more; is it running?"
        )
        with pytest.raises(WorkflowError, match="no Spark master answers"):
            session_for(cluster, working)
    with standalone(tmp_path, port) as (cluster, _), isolated(session_for(cluster, working)) as child:
        assert child.range(3).count() == 3
        stop_sessions()
