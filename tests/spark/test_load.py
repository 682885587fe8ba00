"""What Spark's pages say: as masters, ResourceManagers and drivers answer, and what is no such page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from falcon_assets.compute.spark.endpoints.load import NoPageError, asked, page_of
from falcon_assets.compute.spark.endpoints.probing import probe
from falcon_assets.model.executor import ClusterExecutor
from falcon_assets.planning.executor_health import Answer, Load
from tests.builders import make_cluster
from tests.processes import free_port

MASTER = {
    "status": "ALIVE",
    "aliveworkers": 2,
    "cores": 8,
    "coresused": 5,
    "activeapps": [
        {"id": "app-1", "cores": 3, "state": "RUNNING"},
        {"id": "app-2", "cores": 2, "state": "RUNNING"},
        {"id": "app-3", "cores": 0, "state": "WAITING"},
    ],
}
METRICS = {"activeNodes": 1, "totalVirtualCores": 16, "availableVirtualCores": 4, "appsPending": 2}
Serve = Callable[[dict[str, Any]], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Answers these paths with these values, and no others."""
    servers: list[ThreadingHTTPServer] = []

    def start(pages: dict[str, Any]) -> str:
        class Pages(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = pages.get(self.path)
                self.send_response(404 if found is None else 200)
                self.end_headers()
                self.wfile.write((found if isinstance(found, str) else json.dumps(found)).encode())

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
        Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def executor(endpoint: str = "spark://h:7077", **more: str) -> ClusterExecutor:
    return ClusterExecutor(name="east", endpoint=endpoint, **more)


def test_a_master(serve: Serve) -> None:
    page = serve({"/json/": MASTER})
    assert asked(executor(), (page,)) == Answer(load=Load(cores=8, free=3, waiting=1))
    assert asked(executor(), (page,), "app-1") == Answer(load=Load(cores=8, free=6, waiting=1))
    assert asked(executor(), (page,), "app-3") == Answer(load=Load(cores=8, free=3, waiting=0))


def test_a_master_without_workers(serve: Serve) -> None:
    page = serve({"/json/": MASTER | {"aliveworkers": 0, "cores": 0, "coresused": 0}})
    assert asked(executor(), (page,)).problem == "the Spark master has no worker"


def test_of_several_masters_the_one_that_is_alive_is_asked(serve: Serve) -> None:
    standby, alive = serve({"/json/": {"status": "STANDBY"}}), serve({"/json/": MASTER})
    gone = f"http://127.0.0.1:{free_port()}"
    assert asked(executor(), (gone, standby, alive)).load == Load(8, 3, 1)
    with pytest.raises(NoPageError) as error:
        asked(executor(), (gone, standby))
    assert str(error.value) == f"{gone}/json/: does not answer; {standby}: STANDBY"


def test_yarn(serve: Serve) -> None:
    page = serve({"/ws/v1/cluster/metrics": {"clusterMetrics": METRICS}})
    assert asked(executor("yarn"), (page,)) == Answer(load=Load(cores=16, free=4, waiting=2))
    idle = serve({"/ws/v1/cluster/metrics": {"clusterMetrics": METRICS | {"activeNodes": 0}}})
    assert asked(executor("yarn"), (idle,)).problem == "YARN has no active node"


def test_the_driver_of_a_connect_server(serve: Serve) -> None:
    executors = [{"totalCores": 4, "activeTasks": 3}, {"totalCores": 2, "activeTasks": 0}]
    api = "/api/v1/applications"
    page = serve({api: [{"id": "local 1"}], f"{api}/local%201/executors": executors})
    assert asked(executor("sc://h:15002"), (page,)) == Answer(load=Load(cores=6, free=3, waiting=0))


@pytest.mark.parametrize("endpoint", ["spark://h:7077", "yarn", "sc://h:15002"])
@pytest.mark.parametrize("answer", [None, "<html>", [], {}, {"status": "ALIVE"}, {"clusterMetrics": None}])
def test_what_is_no_such_page(serve: Serve, endpoint: str, answer: Any) -> None:
    page = serve({"/json/": answer, "/ws/v1/cluster/metrics": answer, "/api/v1/applications": answer})
    with pytest.raises(NoPageError):
        asked(executor(endpoint), (page,))


def test_where_the_pages_are(tmp_path: Path) -> None:
    cluster = make_cluster()
    assert page_of(executor("spark://a:1,b:2"), cluster, {}) == ("http://a:8080", "http://b:8080")
    assert page_of(executor(ui="https://ui:1/"), cluster, {}) == ("https://ui:1",)
    assert page_of(executor("sc://h:15002"), cluster, {}) == page_of(executor("yarn"), cluster, {}) == ()
    told = make_cluster(properties={"spark.hadoop.yarn.resourcemanager.webapp.address": "rm:9"})
    assert page_of(executor("yarn"), told, {}) == ("http://rm:9",)


@pytest.mark.parametrize(
    ("said", "page"),
    [
        ({"yarn.resourcemanager.hostname": "rm"}, ("http://rm:8088",)),
        ({"yarn.resourcemanager.hostname": "rm", "yarn.http.policy": "HTTPS_ONLY"}, ("https://rm:8090",)),
        ({"yarn.resourcemanager.webapp.address": "rm:7"}, ("http://rm:7",)),
        (
            {
                "yarn.resourcemanager.hostname": "rm",
                "yarn.resourcemanager.webapp.address": "${yarn.resourcemanager.hostname}:7",
            },
            ("http://rm:7",),
        ),
        ({"yarn.resourcemanager.webapp.address": "${somewhere}:7"}, ()),
        ({}, ()),
    ],
)
def test_yarn_says_where_it_is(tmp_path: Path, said: dict[str, str], page: tuple[str, ...]) -> None:
    lines = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in said.items())
    (tmp_path / "yarn-site.xml").write_text(f"<configuration>{''.join(lines)}</configuration>")
    for name in ("YARN_CONF_DIR", "HADOOP_CONF_DIR"):
        assert page_of(executor("yarn"), make_cluster(), {name: str(tmp_path)}) == page


def test_a_damaged_yarn_site_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "yarn-site.xml").write_text("<configuration>")
    assert page_of(executor("yarn"), make_cluster(), {"HADOOP_CONF_DIR": str(tmp_path)}) == ()


@pytest.mark.parametrize(
    ("endpoint", "problem"),
    [
        ("local[2]", ""),
        ("yarn", ""),
        ("sc://127.0.0.1:{port}", "no Spark Connect server answers at {endpoint} (Connection refused)"),
        ("spark://127.0.0.1:{port}", "no Spark master answers at {endpoint} (127.0.0.1:{port}: Connection refused)"),
        ("k8s://https://127.0.0.1:{port}", "no Kubernetes answers at {endpoint} (Connection refused)"),
        ("k8s://127.0.0.1:{port}", "no Kubernetes answers at {endpoint} (Connection refused)"),
    ],
)
def test_who_does_not_answer(endpoint: str, problem: str) -> None:
    port = free_port()
    where = endpoint.format(port=port)
    cluster = make_cluster()
    assert probe(executor(where), cluster, {}) == Answer(problem.format(endpoint=where, port=port))


def test_a_page_that_does_not_answer_is_a_problem_of_yarn_only() -> None:
    page = f"http://127.0.0.1:{free_port()}"
    said = f"YARN does not answer ({page}/ws/v1/cluster/metrics: does not answer)"
    assert probe(executor("yarn", ui=page), make_cluster(), {}).problem == said
