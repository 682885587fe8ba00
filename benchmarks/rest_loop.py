"""Asks a server of this process: ``python -m benchmarks.rest_loop`` prints the seconds of each answer."""

from __future__ import annotations

import json
import threading
import time

import requests
import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from benchmarks.instance_lists_loop import fill_ledger
from benchmarks.rest import LISTS
from falcon_assets.model.access import Principal, Role
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.rest.interfaces import interfaces
from falcon_assets.surface.rest.openapi import PREFIX
from falcon_assets.surface.served import open_served

ROUNDS = 20
_ROOT = Principal("root", is_superuser=True, role=Role.ADMIN)


def main() -> None:
    """Serves, and asks each list once before it is measured."""
    with open_installation() as installation:
        fill_ledger(installation)
    with open_served() as served:
        app = _Everybody(Starlette(routes=interfaces(served)))
        server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical"))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.05)
        port = server.servers[0].sockets[0].getsockname()[1]
        seconds: dict[str, list[float]] = {}
        with requests.Session() as session:
            for name, path in LISTS.items():
                for number in range(ROUNDS + 1):
                    begun = time.perf_counter()
                    answer = session.get(f"http://127.0.0.1:{port}{PREFIX}{path}")
                    taken = time.perf_counter() - begun
                    if len(answer.json()["items"]) != 50:
                        raise SystemExit(f"{name}: {answer.text[:1000]}")
                    if number:
                        seconds.setdefault(name, []).append(taken)
        server.should_exit = True
        thread.join()
    print(json.dumps(seconds))


class _Everybody:
    """Who asks is an admin."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["user"] = _ROOT
        await self.app(scope, receive, send)


if __name__ == "__main__":
    main()
