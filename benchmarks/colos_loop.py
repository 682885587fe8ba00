"""Measures a front of several colos, in a process of its own: ``CHANGED LISTED ENTITIES`` are numbers.

Prints the seconds of each round as JSON. The colos are one other process, which answers as REST does.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import uvicorn
import yaml
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from falcon_assets.features.entities.listing import Entity
from falcon_assets.features.entities.operations import ApplyEntities
from falcon_assets.features.entities.questions import ListEntities
from falcon_assets.features.entities.results import EntityChange, OperationResult
from falcon_assets.model.access import Principal, Role
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.operations.audit import perform_for
from falcon_assets.operations.operation import Operation, data_of
from falcon_assets.operations.paging import Page
from falcon_assets.settings import load_settings
from falcon_assets.surface.front.colos import one_face
from falcon_assets.surface.rest.client import PREFIX, Server
from falcon_assets.surface.rest.endpoints import AS_RESULT, dumped
from falcon_assets.surface.served import open_served

ROUNDS = 7
ANSWER_SECONDS = 0.3
"""As long a colo takes to apply a feed."""
WHO = Principal("ann", role=Role.ADMIN)


def _cluster(number: int) -> dict[str, object]:
    interfaces = {"write": {"endpoint": "data"}, "execute": {"endpoint": "local[1]"}}
    return {"kind": "cluster", "name": f"lake-{number}", "colo": f"colo-{number}", "interfaces": interfaces}


def _feed(name: str, *numbers: int) -> dict[str, object]:
    validity = {"start": "2013-01-01T00:00Z", "end": "2014-01-01T00:00Z"}
    return {
        "kind": "feed",
        "name": name,
        "frequency": "hours(1)",
        "locations": {"data": f"/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"},
        "clusters": [{"name": f"lake-{number}", "validity": validity} for number in numbers],
        "tags": {"owner": "etl", "classification": "public"},
    }


def serve(port: int, listed_colos: int, entities: int) -> None:
    """All colos, which are told apart by their paths."""

    def listed(number: int) -> dict[bool, str]:
        """Whole, and as data only."""
        found = [Entity(Cluster.model_validate(_cluster(number)))]
        feeds = (_feed(f"feed-{number}-{one}", number) for one in range(entities - 1))
        found += [Entity(Feed.model_validate(one)) for one in feeds]
        page = Page(tuple(found), len(found), None)
        return {True: dumped(ListEntities, page) or "", False: json.dumps(data_of(page))}

    lists = [listed(number) for number in range(listed_colos)]

    async def show(request: Request) -> Response:
        is_whole = AS_RESULT in request.headers["accept"]
        text = lists[int(request.path_params["number"])][is_whole]
        return Response(text, media_type=AS_RESULT if is_whole else "application/json")

    async def apply(request: Request) -> Response:
        await asyncio.sleep(ANSWER_SECONDS)
        change = EntityChange("feed", "raw", "updated", "raw.yaml")
        made = OperationResult("apply", "ann", "", datetime.now(UTC), False, (change,), diff="+")
        return Response(dumped(ApplyEntities, made), media_type=AS_RESULT)

    async def ready(_: Request) -> Response:
        return JSONResponse("ok")

    path = f"/{{number}}{PREFIX}/entities"
    routes = [Route("/", ready), Route(path, show), Route(f"{path}:apply", apply, methods=["POST"])]
    uvicorn.run(Starlette(routes=routes), host="127.0.0.1", port=port, log_level="error")


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """By the clock, and of the processor in this process."""
    began, used = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - began, time.process_time() - used


def main(changed: int, listed: int, entities: int) -> None:
    port = 18471
    colos = multiprocessing.Process(target=serve, args=(port, listed, entities), daemon=True)
    colos.start()
    while not _listens(port):
        time.sleep(0.1)
    with tempfile.TemporaryDirectory() as folder:
        url = f"http://127.0.0.1:{port}"
        declared = [{"name": f"colo-{one}", "url": f"{url}/{one}", "timeout": 25} for one in range(listed)]
        file = Path(folder, "colos.yaml")
        file.write_text(yaml.safe_dump({"colos": declared}))
        settings = load_settings()
        settings.home.mkdir(parents=True)
        front = load_settings({**settings.environ, "FALCON_COLOS": str(file)})
        with ExitStack() as held:
            served = held.enter_context(open_served(front))
            held.enter_context(one_face(served, front))

            def ask(asked: Operation) -> object:
                with served.opened() as installation:
                    return data_of(perform_for(installation, WHO, "rest", asked, only_data=True))

            feed = ApplyEntities(definitions=yaml.safe_dump(_feed("raw", *range(changed))))
            direct = [Server(f"{url}/{number}", None) for number in range(changed)]
            threads = held.enter_context(ThreadPoolExecutor(changed))

            def ask_directly(number: int) -> object:
                return direct[number].perform(feed, as_json=False)

            def ask_all_directly() -> object:
                return [*threads.map(ask_directly, range(changed))]

            ask(ListEntities())  # what the colos have is read once
            ask(feed)
            ask_all_directly()
            work: dict[str, Callable[[], object]] = {
                "all": lambda: ask(feed),
                "slowest": ask_all_directly,
                "one": lambda: ask_directly(0),
                "listed": lambda: ask(ListEntities()),
            }
            found: dict[str, list[float]] = {name + end: [] for name in work for end in ("", "_cpu")}
            for _ in range(ROUNDS):
                for name, one in work.items():
                    by_clock, used = seconds(one)
                    found[name].append(by_clock)
                    found[f"{name}_cpu"].append(used)
    colos.terminate()
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
