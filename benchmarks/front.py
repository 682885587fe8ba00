"""The front against plain ``dagster-webserver``: processor time for the same requests, of a few clients at once.

Both are bound by their processor, and other programs of the machine do not matter so.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import requests

from benchmarks.measure import Line, Steps, alternate, line_of

BAR = 1.1
"""Of the time; that is a tenth of the requests a second."""
ROUNDS, CLIENTS = 7, 4
REQUESTS = {"small": 960, "runs": 240, "page": 960}
_STORAGE = "storage: {custom: {module: falcon_assets.dagster_instance, class: FalconStorage, config: {}}}\n"
_DEFINITIONS = "import dagster as dg\n\n@dg.asset\ndef one(): ...\n\ndefs = dg.Definitions([one])\n"
_SMALL = "{ version }"
_RUNS = "{ runsOrError(limit: 10) { ... on Runs { results { runId status } } } assetNodes { assetKey { path } } }"


def measure() -> list[Line]:
    """Both serve the same code server, database and UI."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as started:
        folder = Path(name)
        (folder / "served.py").write_text(_DEFINITIONS)
        (folder / "entity_defs").mkdir()
        (folder / "dagster.yaml").write_text(_STORAGE + "telemetry: {enabled: false}\n")
        code, _ = started.enter_context(
            _program(folder, "dagster", "code-server", "start", "-f", "served.py", port="--port")
        )
        grpc = f"{{grpc_server: {{host: 127.0.0.1, port: {code}, location_name: one}}}}"
        (folder / "workspace.yaml").write_text(f"load_from: [{grpc}]\n")
        ours = started.enter_context(_program(folder, "falcon", "serve", "--only", "front", port="--port"))
        plain = started.enter_context(_program(folder, "dagster-webserver", "-w", "workspace.yaml", port="-p"))
        for one in (ours, plain):
            _ask(*one)  # both have opened all that they need
        rounds = list(alternate(ROUNDS, lambda: _ask(*ours), lambda: _ask(*plain)))
    return [
        line_of(f"the front: {REQUESTS['small']} GraphQL queries, {CLIENTS} at once", rounds, ["small"], BAR),
        line_of(f"  {REQUESTS['runs']} queries of runs and assets", rounds, ["runs"], BAR),
        line_of(f"  {REQUESTS['page']} times the page of the UI", rounds, ["page"], BAR),
    ]


def _ask(port: int, server: psutil.Process) -> Steps:
    url = f"http://127.0.0.1:{port}"
    return {
        "small": _seconds(server, "small", f"{url}/graphql", {"query": _SMALL}),
        "runs": _seconds(server, "runs", f"{url}/graphql", {"query": _RUNS}),
        "page": _seconds(server, "page", f"{url}/", None),
    }


def _seconds(server: psutil.Process, what: str, url: str, body: dict[str, str] | None) -> float:
    def client(number: int) -> None:
        with requests.Session() as session:
            for _ in range(number):
                answer = session.request("GET" if body is None else "POST", url, json=body, timeout=60)
                if answer.status_code != 200 or b'"errors"' in answer.content:
                    raise SystemExit(f"{url} answers {answer.status_code}: {answer.text[:500]}")

    began = server.cpu_times()
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(client, [REQUESTS[what] // CLIENTS] * CLIENTS))
    ended = server.cpu_times()
    return ended.user + ended.system - began.user - began.system


@contextmanager
def _program(folder: Path, name: str, *arguments: str, port: str) -> Iterator[tuple[int, psutil.Process]]:
    """A program of this environment that listens at a port of loopback."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith(("FALCON_", "DAGSTER_"))}
    environ |= {"DAGSTER_HOME": str(folder), "FALCON_HOME": str(folder / "home")}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
    command = [str(Path(sys.executable).with_name(name)), *arguments, port, str(number)]
    with (folder / f"{name}.log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, env=environ, stdout=log, stderr=log)
    try:
        until = time.monotonic() + 180
        while not _listens(number):
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"{name} does not listen:\n{(folder / f'{name}.log').read_text()[-4000:]}")
            time.sleep(0.2)
        yield number, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(60)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
