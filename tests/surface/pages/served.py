"""The pages on a real server, for users that a header names, and a browser that looks at them."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread
from urllib.parse import urlencode, urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from falcon_assets.features.colos.prism import Prism
from falcon_assets.model.access import Principal, Role
from falcon_assets.surface.pages.routes import routes
from falcon_assets.surface.served import ServedInstallation
from tests.waiting import wait_until

PEOPLE = {
    "ann": Principal("ann", frozenset({"data"}), role=Role.VIEWER, way="test"),
    "eve": Principal("eve", role=Role.VIEWER, way="test"),
    "leo": Principal("leo", role=Role.LAUNCHER, way="test"),
    "edi": Principal("edi", role=Role.EDITOR, way="test"),
    "adam": Principal("adam", role=Role.ADMIN, way="test"),
}


class Login:
    """Takes the user from a header, else ``usual``: the part of the front that proves who comes is elsewhere."""

    def __init__(self, app: ASGIApp, usual: str) -> None:
        self.app, self.usual = app, usual

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"x-test-user", self.usual.encode()).decode()
            scope["user"] = PEOPLE.get(given)
        await self.app(scope, receive, send)


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str


@dataclass
class Person:
    """A browser without scripts: it keeps cookies, and sends forms with what was hidden in them."""

    address: str
    name: str = "adam"
    cookies: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, **headers: str) -> Answer:
        return self._request("GET", path, None, headers)

    def post(self, path: str, fields: Sequence[tuple[str, str]] = (), **headers: str) -> Answer:
        given = {"Content-Type": "application/x-www-form-urlencoded", "Origin": self.address, **headers}
        return self._request("POST", path, urlencode(fields), given)

    def token(self, page: str = "/falcon/entities") -> tuple[str, str]:
        """The hidden field of a form, of that page."""
        found = re.search(r'name="form_token" value="(\w+)"', self.get(page).text)
        assert found
        return "form_token", found[1]

    def _request(self, method: str, path: str, body: str | None, headers: Mapping[str, str]) -> Answer:
        connection = http.client.HTTPConnection(urlsplit(self.address).netloc, timeout=60)
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        sent = {"X-Test-User": self.name, **({"Cookie": cookies} if cookies else {}), **headers}
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in sent.items()})
        response = connection.getresponse()
        text = response.read().decode()
        for said in response.headers.get_all("Set-Cookie") or ():
            name, _, rest = said.partition("=")
            self.cookies[name] = rest.partition(";")[0]
        connection.close()
        return Answer(response.status, dict(response.headers), text)


@contextmanager
def serving(
    served: ServedInstallation, usual: str = "adam", root: str = "", prism: Prism | None = None
) -> Iterator[str]:
    """The address of a server with the pages, below ``root``."""
    app = Login(Starlette(routes=routes(served, prism)), usual)
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", root_path=root, lifespan="off")
    server = uvicorn.Server(config)
    thread = Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
