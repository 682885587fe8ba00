from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from falcon_assets.compute.spark.endpoints.confs import session_confs, without_secrets
from falcon_assets.compute.spark.sessions import application_id, session_for, stop_sessions
from falcon_assets.errors import WorkflowError
from falcon_assets.model.cluster import Cluster
from tests.builders import make_cluster
from tests.listener import LISTENER_HOME
from tests.processes import CHECKOUT
from tests.spark.sandbox import cluster_on
from tests.waiting import wait_until


def test_defaults_can_be_overridden() -> None:
    confs = session_confs(make_cluster(properties={"spark.app.name": "mine", "threshold": "15"}), "/scratch/")
    assert confs["spark.app.name"] == "mine"
    assert confs["spark.sql.warehouse.dir"] == "/scratch/spark-warehouse"
    assert "threshold" not in confs


@pytest.mark.soak
def test_a_session_is_warm_until_it_is_another_or_dead(local_cluster: Cluster, working: str) -> None:
    stop_sessions()  # tests before this one may have left one that listens, and does for both
    first = session_for(local_cluster, working)
    assert session_for(local_cluster, working) is first
    assert application_id(first).startswith("local-")
    listened = session_for(local_cluster, working, LISTENER_HOME)
    assert listened is not first
    assert session_for(local_cluster, working) is listened
    other = cluster_on("local[1]", **{"spark.driver.memory": "600m"})
    second = session_for(other, working)
    assert second.sparkContext.master == "local[1]"
    jvm: Any = second.sparkContext._jvm
    assert "-Xmx600m" in jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
    second.stop()
    assert session_for(other, working).range(3).select(sf.sum("id")).first() == (3,)
    gateway: Any = SparkContext._gateway
    gateway.proc.kill()
    gateway.proc.wait()
    stop_sessions()
    assert SparkContext._active_spark_context is None


def test_what_is_ended_while_it_starts_is_stopped_without_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a signal during a slow start: its JVM answers nothing, or not in time."""
    stop_sessions()
    asked: list[object] = []

    def away(*told: object) -> None:
        asked.append(told)
        raise Py4JNetworkError("An error occurred while trying to connect to the Java server")

    def wait(seconds: float) -> None:
        asked.append("wait")
        if "kill" not in asked:
            raise subprocess.TimeoutExpired("java", seconds)

    process = SimpleNamespace(
        stdin=SimpleNamespace(close=lambda: asked.append("close")), wait=wait, kill=lambda: asked.append("kill")
    )
    monkeypatch.setattr(SparkContext, "_active_spark_context", SimpleNamespace(stop=away))
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(shutdown=away, proc=process))
    stop_sessions()
    assert SparkContext._active_spark_context is None
    assert asked == [(), (), "close", "wait", "kill", "wait"]


def test_a_property_that_spark_refuses(working: str) -> None:
    with pytest.raises(WorkflowError) as caught:
        session_for(cluster_on("local[1]", **{"spark.driver.memory": "100m"}), working)
    assert str(caught.value).startswith(
        "cluster 'primary': Spark at local[1] did not start: [INVALID_DRIVER_MEMORY.SYSTEM_MEMORY] "
    )


@pytest.mark.soak
def test_a_session_of_somebody_else_is_not_taken_over(local_cluster: Cluster, working: str) -> None:
    stop_sessions()
    SparkSession.builder.master("local[1]").appName("other").config("spark.ui.enabled", "false").getOrCreate()
    assert session_for(local_cluster, working).sparkContext.appName == "falcon-primary"


@pytest.mark.parametrize(
    ("endpoint", "message"),
    [
        pytest.param(
            "spark://127.0.0.1:1,127.0.0.1:2",
            "cluster 'primary': no Spark master answers at spark://127.0.0.1:1,127.0.0.1:2 (127.0.0.1:1: Connection "
            "refused; 127.0.0.1:2: Connection refused): start it, or fix interfaces.execute.endpoint",
            id="standalone",
        ),
        pytest.param(
            "sc://127.0.0.1:1/;token=hunter2",
            "cluster 'primary': no Spark Connect server answers at sc://127.0.0.1:1 (Connection refused): "
            "start it, or fix interfaces.execute.endpoint",
            id="connect",
        ),
    ],
)
def test_nobody_at_the_endpoint(working: str, endpoint: str, message: str) -> None:
    with pytest.raises(WorkflowError) as caught:
        session_for(cluster_on(endpoint), working)
    assert str(caught.value) == message


@pytest.mark.soak
def test_a_session_that_the_server_dropped_is_replaced(
    connect_cluster: Cluster, local_cluster: Cluster, working: str
) -> None:
    first: Any = session_for(connect_cluster, working)
    assert session_for(connect_cluster, working) is first
    first.client.release_session()
    second = session_for(connect_cluster, working)
    assert second is not first
    assert second.range(3).select(sf.sum("id")).first() == (3,)
    classic = session_for(local_cluster, working)  # PySpark's functions follow
    assert classic.range(3).select(sf.sum("id")).first() == (3,)


def test_tokens_are_not_shown() -> None:
    assert without_secrets("sc://h:15002/;token=abc;use_ssl=true") == "sc://h:15002"


@pytest.mark.soak
def test_who_interrupts_the_start_leaves_no_jvm(tmp_path: Path) -> None:
    program = (
        "from tests.builders import make_cluster; from falcon_assets.compute.spark.sessions import session_for; "
        f"session_for(make_cluster(), {str(tmp_path)!r})"
    )
    command = [sys.executable, "-c", "import signal; signal.signal(2, signal.default_int_handler); " + program]
    with subprocess.Popen(command, cwd=CHECKOUT, stderr=subprocess.PIPE, text=True) as started:
        (jvm,) = wait_until(lambda: [one for one in psutil.Process(started.pid).children() if is_jvm(one)])
        started.send_signal(signal.SIGINT)
        _, said = started.communicate(timeout=60)
    assert "KeyboardInterrupt" in said
    wait_until(lambda: not jvm.is_running())


def is_jvm(process: psutil.Process) -> bool:
    return "org.apache.spark.deploy.SparkSubmit" in process.cmdline()
