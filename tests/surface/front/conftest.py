"""A front on a real socket, before a real code server, where a header says who asks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
import uvicorn
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

from falcon_assets.model.access import Principal, Role
from falcon_assets.settings import Settings
from falcon_assets.surface.front.app import open_front
from falcon_assets.surface.front.server import server_config
from tests.processes import free_port
from tests.waiting import wait_until

ENTITIES = """
kind: cluster
name: primary
interfaces: {write: {endpoint: data/primary}, execute: {endpoint: "local[1]"}}
---
kind: feed
name: free
frequency: hours(1)
locations: {data: "/free/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
---
kind: feed
name: owned
frequency: hours(1)
locations: {data: "/owned/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}}]
acl: {owner: ann, group: data, permission: "0755"}
"""
DEFINITIONS = """
import dagster as dg
from falcon_assets.surface.jobs.operation_jobs import falcon_entity_operation

@dg.asset(key=["primary", "free"], owners=[], partitions_def=dg.StaticPartitionsDefinition(["a", "b"]))
def free(): ...

@dg.asset(key=["primary", "owned"], owners=["team:ann", "team:data"],
          partitions_def=dg.StaticPartitionsDefinition(["a", "b"]))
def owned(): ...

growing = dg.DynamicPartitionsDefinition(name="growing")

@dg.asset(key=["primary", "grown"], partitions_def=growing)
def grown(): ...

@dg.op
def nothing(): ...

@dg.job
def plain():
    nothing()

@dg.sensor(job=plain)
def looking(): ...

plain_schedule = dg.ScheduleDefinition(name="nightly", job=plain, cron_schedule="0 0 * * *")
defs = dg.Definitions(
    assets=[free, owned, grown], jobs=[plain, falcon_entity_operation], sensors=[looking], schedules=[plain_schedule]
)
"""


@dataclass
class ByHeader:
    """Trusts a header: ``NAME ROLE GROUP...``."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and (said := Headers(scope=scope).get("x-who")):
            name, role, *groups = said.split()
            scope["user"] = Principal(name, frozenset(groups), role=Role[role], way="header")
        await self.app(scope, receive, send)


@dataclass(frozen=True)
class Front:
    port: int
    settings: Settings

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str, who: str = "", **headers: str) -> requests.Response:
        return requests.get(self.url + path, headers={"x-who": who, **headers}, timeout=120)

    def post(self, query: str, who: str = "", headers: dict[str, str] | None = None, **variables: Any) -> Any:
        body = {"query": query, "variables": variables}
        answer = requests.post(f"{self.url}/graphql", json=body, headers={"x-who": who, **(headers or {})}, timeout=120)
        return answer.json()


def write_location(settings: Settings, folder: Path) -> Path:
    """Entities, and the workspace of a code location with assets of theirs."""
    settings.entity_defs.mkdir()
    (settings.entity_defs / "all.yaml").write_text(ENTITIES)
    (folder / "served.py").write_text(DEFINITIONS)
    (folder / "dagster.yaml").write_text("run_coordinator: {module: dagster, class: QueuedRunCoordinator}\n")
    workspace = folder / "workspace.yaml"
    workspace.write_text("load_from: [{python_file: {relative_path: served.py, location_name: served}}]\n")
    return workspace


@pytest.fixture(scope="module")
def front(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    folder = tmp_path_factory.mktemp("front")
    workspace = write_location(settings, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        with open_front(settings, workspace, logins=[Middleware(ByHeader)]) as app, serving(app) as port:
            yield Front(port, settings)


@contextmanager
def serving(app: ASGIApp, port: int = 0, **options: Any) -> Iterator[int]:
    """The application on a port of loopback, by the server that ``falcon serve`` has."""
    port = port or free_port()
    server = uvicorn.Server(server_config(app, "127.0.0.1", port, **options))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: server.started, what="the front")
    yield port
    server.should_exit = True
    thread.join()
