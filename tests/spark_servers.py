"""Real Spark in its three shapes: in this process, a standalone cluster, and a Connect server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from falcon_assets.compute.spark.capture.listener_jar import loading
from falcon_assets.compute.spark.sessions import session_for, stop_sessions
from falcon_assets.model.cluster import Cluster
from tests.listener import LISTENER_HOME
from tests.processes import free_port, listens
from tests.spark.sandbox import CONFS, SECRET, SECRET_KEY, Sandbox, cluster_on
from tests.waiting import wait_until

START_SECONDS = 180
"""A JVM takes a minute on a machine that is very busy."""


def wait_for(condition: Callable[[], bool], child: subprocess.Popen[bytes], log: Path) -> None:
    def there() -> bool:
        assert child.poll() is None, f"{child.args} did not come up:\n{log.read_text()}"
        return condition()

    wait_until(there, START_SECONDS, lambda: f"{child.args}:\n{log.read_text()}")


@contextmanager
def daemon(
    folder: Path, name: str, *command: str, before: Sequence[str] = (), **given: str
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A Spark program in the foreground of a process group of its own, ended with all that it started.

    ``before`` is a command that runs the program, such as ``ip netns exec``.
    """
    log = folder / f"{name}.log"
    environ = {
        **{key: value for key, value in os.environ.items() if not key.startswith("SPARK_") or key.endswith("_OPTS")},
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOG_DIR": str(folder),
        "SPARK_PID_DIR": str(folder),
        "SPARK_DAEMON_MEMORY": "512m",
        "PYSPARK_PYTHON": sys.executable,
        **given,
    }
    script = str(Path(_find_spark_home(), command[0]))
    with log.open("wb") as output:
        child = subprocess.Popen(
            [*before, script, *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=environ,
            cwd=folder,
        )
    try:
        yield child, log
    finally:
        end_group(child)


def end_group(child: subprocess.Popen[bytes]) -> None:
    """Ends the child and waits for its whole group: the scripts end before the JVM that they started."""
    deadline = time.monotonic() + 15
    number: int = signal.SIGTERM
    with suppress(ProcessLookupError):
        while True:
            os.killpg(child.pid, number)
            child.poll()
            number = 0 if time.monotonic() < deadline else signal.SIGKILL
            time.sleep(0.05)  # whoever is no child of ours cannot be waited for


@pytest.fixture(scope="session")
def spark_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="session")
def local_cluster() -> Cluster:
    """In the JVM of this process, which knows a secret."""
    return cluster_on("local[2]", **{SECRET_KEY: SECRET})


@pytest.fixture(scope="session")
def standalone_cluster(spark_folder: Path) -> Iterator[Cluster]:
    """Spark's own master with one worker, on loopback."""
    with standalone(spark_folder, free_port()) as (cluster, _):
        yield cluster


@contextmanager
def standalone(folder: Path, port: int, ui: int = 0) -> Iterator[tuple[Cluster, list[subprocess.Popen[bytes]]]]:
    """The same at that port, with its processes: master, worker. The pages of the master are at the port ``ui``."""
    url = f"spark://127.0.0.1:{port}"
    master = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", str(ui))
    worker = ("--host", "127.0.0.1", "--webui-port", "0", "--cores", "2", "--memory", "2g", "--work-dir")
    package = "org.apache.spark.deploy"
    with daemon(folder, "master", "bin/spark-class", f"{package}.master.Master", *master) as (child, log):
        wait_for(lambda: listens(port), child, log)
        workers = ("bin/spark-class", f"{package}.worker.Worker", *worker, str(folder / "work"), url)
        # In such a locale a JVM cannot say ü: what we tell its executors has to fix that.
        with daemon(folder, "worker", *workers, LC_ALL="C") as (second, second_log):
            wait_for(lambda: "Registering worker" in log.read_text(), second, second_log)
            cluster = cluster_on(
                url,
                **{
                    "spark.driver.host": "127.0.0.1",
                    "spark.driver.bindAddress": "127.0.0.1",
                    "spark.executor.memory": "512m",
                    "spark.executor.extraJavaOptions": os.environ["SPARK_SUBMIT_OPTS"],
                    "spark.cores.max": "1",
                },
            )
            yield cluster, [child, second]


@pytest.fixture(scope="session")
def connect_cluster(spark_folder: Path) -> Iterator[Cluster]:
    """Spark's own Connect server."""
    with connect_server(spark_folder, "connect") as cluster:
        yield cluster


@contextmanager
def connect_server(folder: Path, name: str, more: Mapping[str, str] | None = None, **given: str) -> Iterator[Cluster]:
    """The same in an environment of its own, with more settings."""
    with connect_server_process(folder, name, more, **given) as (cluster, _):
        yield cluster


@contextmanager
def connect_server_process(
    folder: Path, name: str, more: Mapping[str, str] | None = None, **given: str
) -> Iterator[tuple[Cluster, subprocess.Popen[bytes]]]:
    """The same, with its process."""
    port = free_port()
    confs = {**CONFS, **(more or {}), "spark.connect.grpc.binding.port": str(port), "spark.master": "local[2]"}
    confs["spark.sql.warehouse.dir"] = str(folder / f"{name}-warehouse")
    listener = loading(LISTENER_HOME, {**os.environ, **given}, confs)
    flags = [part for key, value in {**confs, **listener.confs}.items() for part in ("--conf", f"{key}={value}")]
    given = {**given, **listener.environ}
    with daemon(folder, name, "sbin/start-connect-server.sh", "--wait", *flags, **given) as (child, log):
        wait_for(lambda: listens(port), child, log)
        yield cluster_on(f"sc://127.0.0.1:{port}"), child


# Two daemons, and a driver and an executor for each session and program: four machines are too many for every day.
@pytest.fixture(scope="session", params=["local", pytest.param("standalone", marks=pytest.mark.soak), "connect"])
def any_cluster(request: pytest.FixtureRequest) -> Cluster:
    """Each kind of execute endpoint; the servers start only when their turn comes."""
    cluster: Cluster = request.getfixturevalue(f"{request.param}_cluster")
    return cluster


@pytest.fixture(scope="session", autouse=True)
def _stop_at_the_end() -> Iterator[None]:
    yield
    stop_sessions()


@pytest.fixture
def working(tmp_path: Path) -> str:
    """The working folder of all clusters: one for all tests, so that a session stays warm from test to test."""
    return str(tmp_path.parent)


@pytest.fixture
def spark(local_cluster: Cluster, working: str) -> SparkSession:
    """The warm session of the local cluster."""
    return session_for(local_cluster, working, LISTENER_HOME)


@pytest.fixture
def sandbox(tmp_path: Path, local_cluster: Cluster) -> Sandbox:
    return Sandbox(tmp_path, local_cluster)
