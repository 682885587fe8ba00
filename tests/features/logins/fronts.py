"""A small application behind the middleware of logins, on a real uvicorn, with a real database."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import requests
import uvicorn
import yaml
from sqlalchemy import delete, select
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from falcon_assets.features.logins.declaration import read_logins
from falcon_assets.features.logins.middleware import Authentication
from falcon_assets.features.logins.operations import AddUser
from falcon_assets.features.logins.recognition import Logins
from falcon_assets.history.tables import API_TOKENS, AUDIT, LOCAL_USERS, LOGIN_ATTEMPTS, SESSIONS
from falcon_assets.model.access import Principal, Role
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.request_origin import requests_from
from falcon_assets.surface.front.server import server_config
from tests.processes import free_port
from tests.waiting import wait_until

PASSWORD = "correct horse battery"
ROLES = [{"role": "admin", "users": ["ann"]}, {"role": "viewer", "groups": ["staff"]}]
ADMIN = Principal("root", role=Role.ADMIN)


async def whoami(request: Request) -> Response:
    user = request.user
    return JSONResponse([user.name, sorted(user.groups), user.role.name, user.way])


async def echo(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text(socket.user.name)
    await socket.close()


async def talk(socket: WebSocket) -> None:
    await socket.accept()
    while True:
        await socket.send_text(await socket.receive_text())


async def healthz(_: Request) -> Response:
    return JSONResponse("ok")


@dataclass
class Front:
    url: str
    installation: Installation
    verify: Any = None
    session: requests.Session = field(default_factory=requests.Session)

    def get(self, path: str = "/", **options: Any) -> requests.Response:
        return self.session.get(f"{self.url}{path}", verify=self.verify, allow_redirects=False, timeout=30, **options)

    def post(self, path: str = "/", **options: Any) -> requests.Response:
        return self.session.post(f"{self.url}{path}", verify=self.verify, allow_redirects=False, timeout=30, **options)

    def anew(self) -> Front:
        """The same front for another browser."""
        return Front(self.url, self.installation, self.verify)

    def login(self, name: str, password: str, place: str = "/", **options: Any) -> requests.Response:
        page = self.get("/falcon/login", params={"next": place})
        fields = {**hidden_fields(page.text), "name": name, "password": password}
        return self.post("/falcon/login", data=fields, **options)

    def audit(self) -> list[tuple[str, str, str]]:
        asked = select(AUDIT.c.principal, AUDIT.c.operation, AUDIT.c.result).order_by(AUDIT.c.id)
        with self.installation.database.connect() as connection:
            return [tuple(row) for row in connection.execute(asked)]


def hidden_fields(page: str) -> dict[str, str]:
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))


Fronts: TypeAlias = Callable[..., AbstractContextManager[Front]]


def as_admin(installation: Installation, operation: Any) -> Any:
    with requests_from("rest", principal=ADMIN):
        return operation.run(installation)


@contextmanager
def _front(
    installation: Installation, folder: Path, tls: dict[str, Any] | None = None, port: int = 0, **ways: Any
) -> Iterator[Front]:
    port = port or free_port()
    scheme = "https" if tls else "http"
    declared = {"url": f"{scheme}://localhost:{port}", "roles": ROLES, **ways}
    file = folder / "logins.yaml"
    file.write_text(yaml.safe_dump(declared))
    logins = Logins(read_logins(file), installation)
    routes = [Route("/healthz", healthz), WebSocketRoute("/ws", echo), WebSocketRoute("/talk", talk)]
    routes += [Route("/{path:path}", whoami, methods=["GET", "POST"])]
    middleware = [Middleware(Authentication, logins=logins, is_open={"/healthz"}.__contains__)]  # type: ignore[arg-type]
    app = Starlette(routes=routes, middleware=middleware)
    config = server_config(app, "localhost", port, **(tls or {}))
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: server.started, 30)
    try:
        yield Front(str(declared["url"]), installation)
    finally:
        server.should_exit = True
        thread.join(30)


@pytest.fixture
def fronts(opened: Installation, tmp_path: Path) -> Fronts:
    """Starts fronts with these ways in; nobody is known there yet."""
    with opened.database.begin() as connection:
        for table in (SESSIONS, API_TOKENS, LOCAL_USERS, LOGIN_ATTEMPTS, AUDIT):
            connection.execute(delete(table))
    return partial(_front, opened, tmp_path)


@pytest.fixture
def front(fronts: Fronts) -> Iterator[Front]:
    """With passwords; ann is an admin, and bob has no role."""
    with fronts(passwords={}) as found:
        for name in ("ann", "bob"):
            as_admin(found.installation, AddUser(name=name, password=PASSWORD))
        yield found
