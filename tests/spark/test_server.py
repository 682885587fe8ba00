from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import psutil
import pytest

from falcon_assets.compute.engines.computing.run import run_workflow
from falcon_assets.compute.spark.connect_server import authenticated, start, status, stop
from falcon_assets.compute.spark.endpoints.connect_endpoint import served_port, with_token, without_token
from falcon_assets.compute.spark.server_process import ServerFiles, ServerProcess
from falcon_assets.compute.spark.sessions import isolated, session_for, stop_sessions
from falcon_assets.compute.spark_executor import SparkExecutor
from falcon_assets.errors import SettingsError, WorkflowError
from tests.listener import share_listener
from tests.processes import free_port
from tests.spark.sandbox import Sandbox, cluster_on


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("home")
    share_listener(made)
    return made


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[ServerProcess]:
    """One server for the module; the last test stops it."""
    try:
        yield start(home, free_port(), {**os.environ, "SPARK_DRIVER_MEMORY": "512m", "LC_ALL": "C"}).server
    finally:
        stop(home)


def test_it_listens_on_loopback_only(server: ServerProcess) -> None:
    listening = {
        one.laddr.ip.removeprefix("::ffff:")
        for one in psutil.Process(server.pid).net_connections()
        if one.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}


def test_its_names_of_files_are_utf_8_whatever_the_shell_says(server: ServerProcess) -> None:
    assert psutil.Process(server.pid).environ()["LC_ALL"] == "C.UTF-8"


def test_it_is_no_part_of_the_terminal(server: ServerProcess) -> None:
    assert os.getsid(server.pid) == server.pid


def test_the_token_is_in_its_file_only(server: ServerProcess, home: Path) -> None:
    files = ServerFiles(home)
    token = files.token()
    lines = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    assert [line for line in lines if token in line] == []
    holders = [file.name for file in files.folder.rglob("*") if file.is_file() and token in file.read_text("latin-1")]
    assert holders == ["token"]
    assert stat.S_IMODE((files.folder / "token").stat().st_mode) == 0o600
    assert stat.S_IMODE(files.folder.stat().st_mode) == 0o700


def test_a_second_start_finds_it(server: ServerProcess, home: Path) -> None:
    again = start(home, server.port, os.environ)
    assert (again.server, again.already) == (server, True)
    assert status(home) == server


def test_another_port_is_refused(server: ServerProcess, home: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        start(home, 1, os.environ)
    assert str(caught.value) == (
        f"the Spark Connect server runs at {server.endpoint} already: falcon spark stop, then start it again"
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_sessions_do_not_see_each_other(server: ServerProcess, home: Path, working: str, host: str) -> None:
    session = session_for(cluster_on(f"sc://{host}:{server.port}"), working, home)
    with isolated(session) as one, isolated(session) as two:
        one.range(3).createOrReplaceTempView("mine")
        assert one.catalog.tableExists("mine")
        assert not two.catalog.tableExists("mine")
    stop_sessions()


@pytest.mark.parametrize(
    ("endpoint", "why"),
    [
        pytest.param("sc://127.0.0.1:{port}", "No authentication token provided", id="none"),
        pytest.param("sc://localhost:{port}/;token=wrong", "Invalid authentication token", id="wrong"),
    ],
)
def test_a_client_that_does_not_know_the_token(server: ServerProcess, working: str, endpoint: str, why: str) -> None:
    given = endpoint.format(port=server.port)
    with pytest.raises(WorkflowError) as caught:
        session_for(cluster_on(given), working)
    where = given.partition("/;")[0]
    assert str(caught.value) == f"cluster 'primary': Spark at {where} did not start: {why}"


def test_spark_submit_has_the_token_from_its_environment(
    server: ServerProcess, home: Path, tmp_path: Path, working: str
) -> None:
    cluster = cluster_on(server.endpoint)
    box = Sandbox(tmp_path, cluster)
    box.file(
        "app.py",
        "import os, sys\n"
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        "spark.range(3).write.parquet(sys.argv[1])\n"
        "command = open(f'/proc/{os.getppid()}/cmdline').read() if os.path.isdir('/proc/self') else ''\n"
        "assert os.environ['SPARK_CONNECT_AUTHENTICATE_TOKEN'] not in command\n",
    )

    workflow = box.workflow(engine="spark-submit", path="app.py", args=["${delays}"])
    result = run_workflow(box.task(workflow, executor=SparkExecutor(cluster, lambda: working, home)))
    assert result.records == {"delays": 3}
    stop_sessions()


def test_only_the_server_of_that_port_gets_the_token(server: ServerProcess, home: Path) -> None:
    token = ServerFiles(home).token()
    assert authenticated(f"{server.endpoint}/;user_id=etl", home) == (
        f"sc://localhost:{server.port}/;user_id=etl;token={token}"
    )
    for other in ("local[2]", "sc://127.0.0.1:1", f"sc://h:{server.port}", f"{server.endpoint}/;token=own"):
        assert authenticated(other, home) == other


def test_it_stops(server: ServerProcess, home: Path) -> None:
    assert stop(home) == server
    assert not psutil.pid_exists(server.pid)
    assert status(home) is None
    assert stop(home) is None
    assert sorted(file.name for file in (home / "spark").glob("*.json")) == []


def test_a_number_that_belongs_to_another_process_now(tmp_path: Path) -> None:
    own = psutil.Process()
    files = ServerFiles(tmp_path)
    files.prepare()
    recorded = ServerProcess(own.pid, own.create_time(), 15002)
    assert recorded.process() == own
    for stale in (replace(recorded, started=recorded.started - 60), replace(recorded, pid=2**22 + 1)):
        (files.folder / "server.json").write_text(json.dumps(asdict(stale)))
        assert files.running() is None
        assert status(tmp_path) is None
    assert stop(tmp_path) is None
    assert not (files.folder / "server.json").exists()


def test_a_server_that_does_not_come_up(tmp_path: Path) -> None:
    share_listener(tmp_path)
    with pytest.raises(SettingsError) as caught:
        start(tmp_path, free_port(), {**os.environ, "SPARK_DRIVER_MEMORY": "nonsense"})
    log = tmp_path / "spark" / "server.log"
    assert str(caught.value) == f"the Spark Connect server ended while it started: its log {log} says why"
    assert "nonsense" in log.read_text()
    assert ServerFiles(tmp_path).running() is None


def test_nobody_on_loopback(working: str, tmp_path: Path) -> None:
    with pytest.raises(WorkflowError) as caught:
        session_for(cluster_on("sc://127.0.0.1:1"), working, tmp_path)
    assert str(caught.value) == (
        "cluster 'primary': no Spark Connect server answers at sc://127.0.0.1:1 (Connection refused): "
        "start it with `falcon spark start --port 1`, or fix interfaces.execute.endpoint"
    )


def test_endpoints() -> None:
    assert served_port("sc://localhost") == 15002
    assert served_port("sc://localhost:7/;use_ssl=true") is None
    assert served_port("spark://localhost:7077") is None
    assert with_token("sc://127.0.0.1:7/", "abc") == "sc://localhost:7/;token=abc"
    assert without_token("sc://h:7/;token=abc;use_ssl=true") == "sc://h:7/;use_ssl=true"
