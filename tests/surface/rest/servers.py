"""A server of the interfaces for programs, and clients of it; who asks is in a header, which no real front would do."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import requests
import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from falcon_assets.model.access import Principal, Role
from falcon_assets.surface.rest.interfaces import interfaces
from falcon_assets.surface.rest.openapi import PREFIX
from falcon_assets.surface.served import ServedInstallation
from tests.waiting import wait_until

WHO = "X-Test-User"


class _Known:
    """Who asks is whom the header names, or an admin of the name that the token is."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        said = dict(scope.get("headers", ())).get(WHO.lower().encode())
        token = dict(scope.get("headers", ())).get(b"authorization", b"").removeprefix(b"Bearer ").decode()
        if token:
            scope["user"] = Principal(token, role=Role.ADMIN, way="token")
        elif said:
            name, role, groups = json.loads(said)
            scope["user"] = Principal(name, frozenset(groups), role=Role[role], way="test")
        await self.app(scope, receive, send)


@dataclass(frozen=True)
class Client:
    """Sends requests as a user; ``who`` None: as nobody."""

    url: str
    who: tuple[str, Role, tuple[str, ...]] | None

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.who is None else {WHO: json.dumps([self.who[0], self.who[1].name, self.who[2]])}

    def ask(self, method: str, path: str, **how: Any) -> requests.Response:
        own = {**self.headers, **how.pop("headers", {})}
        return requests.request(method, f"{self.url}{path}", headers=own, timeout=60, **how)

    def rest(self, method: str, path: str, **how: Any) -> requests.Response:
        return self.ask(method, f"{PREFIX}{path}", **how)

    def called(self, name: str, role: Role, *groups: str) -> Client:
        return Client(self.url, (name, role, groups))


@contextmanager
def serving(served: ServedInstallation) -> Iterator[Client]:
    """Serves them on a port of this machine, for an admin."""
    app = Starlette(routes=interfaces(served))
    server = uvicorn.Server(uvicorn.Config(_Known(app), host="127.0.0.1", port=0, log_level="critical"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield Client(f"http://127.0.0.1:{port}", ("root", Role.ADMIN, ()))
    finally:
        server.should_exit = True
        thread.join(30)
