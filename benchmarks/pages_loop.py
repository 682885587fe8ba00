"""Pages from a server of this process: ``python -m benchmarks.pages_loop`` prints the seconds of each answer."""

from __future__ import annotations

import json
import threading
import time
import urllib.request

import uvicorn
from sqlalchemy import text
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from benchmarks.pages import ENTITIES, HOURS
from falcon_assets.model.access import Principal, Role
from falcon_assets.operations.installation import open_installation
from falcon_assets.surface.pages.routes import routes
from falcon_assets.surface.served import open_served

ROUNDS = 5
ROWS = """\
INSERT INTO falcon.process_instances
    (process, cluster, nominal, state, reason, attempt, failures, deaths, run_id, started, ended, event_id)
SELECT 'work-' || lpad(p::text, 3, '0'), 'primary', timestamptz '2013-01-01T00:00Z' + n * interval '1 hour',
       CASE WHEN (n + p) % :each = 0 THEN 'FAILED' ELSE 'SUCCEEDED' END, '', 1, 0, 0, 'run-' || n, now(), now(), n
FROM generate_series(0, :entities - 1) AS p, generate_series(0, :hours - 1) AS n
"""


def main() -> None:
    """Each answer is preceded by one that is not measured."""
    with open_installation() as installation:
        engine = installation.ledger.engine

        def fill(each: int) -> None:
            with engine.begin() as connection:
                connection.execute(text("DELETE FROM falcon.process_instances"))
                if each:
                    connection.execute(text(ROWS), {"each": each, "entities": ENTITIES, "hours": HOURS})
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.execute(text("VACUUM ANALYZE falcon.process_instances"))

        with open_served() as served:
            config = uvicorn.Config(_as_admin(Starlette(routes=routes(served))), port=0, log_level="error")
            server = uvicorn.Server(config)
            threading.Thread(target=server.run, daemon=True).start()
            while not server.started:
                time.sleep(0.05)
            port = server.servers[0].sockets[0].getsockname()[1]
            seconds = {}
            for name, each in {"some": 50, "all": 2, "none": 0}.items():
                fill(each)
                seconds[name] = _timed(f"http://127.0.0.1:{port}/falcon/instances?steps={HOURS}&limit={ENTITIES}", each)
            server.should_exit = True
    print(json.dumps(seconds))


def _as_admin(app: ASGIApp) -> ASGIApp:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "user": Principal("adam", role=Role.ADMIN, way="benchmark")}, receive, send)

    return answer


def _timed(url: str, each: int) -> list[float]:
    seconds = []
    for _ in range(ROUNDS + 1):
        started = time.perf_counter()
        with urllib.request.urlopen(url) as answer:
            page = answer.read().decode()
        seconds.append(time.perf_counter() - started)
    rows, failed = page.count('<td class="cells"'), page.count('class="FAILED"')
    assert rows == ENTITIES, rows
    assert failed == (ENTITIES * HOURS // each if each else 0), failed
    return seconds[1:]


if __name__ == "__main__":
    main()
