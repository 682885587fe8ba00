"""The front as an ASGI application: our routes, then Dagster's, behind what hardens and who is known."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from falcon_assets.errors import FalconError
from falcon_assets.features.metrics.exposition import ShowMetrics
from falcon_assets.history.dagster_internals.webserver import Webserver, make_app, process_context
from falcon_assets.model.access import Principal, Role
from falcon_assets.operations.audit import perform_for
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.settings import Settings
from falcon_assets.surface.front.hardening import LOOPBACK, EverybodyIs, Hardening, OnlyKnown
from falcon_assets.surface.front.mutations import GuardedMutations
from falcon_assets.surface.front.query_limits import SizeRule

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


@contextmanager
def open_front(
    settings: Settings,
    workspace: Path,
    path_prefix: str = "",
    logins: Sequence[Middleware] = (),
    routes: Sequence[BaseRoute] = (),
) -> Iterator[Starlette]:
    """The application, with the code locations of ``workspace`` open.

    Args:
        settings: Of this installation.
        workspace: The ``workspace.yaml``.
        path_prefix: Of all routes, such as ``/falcon-prod``; a proxy passes it on.
        logins: Middleware that sets ``scope["user"]`` to a Principal; none: everybody is the user of this process.
        routes: Of ours, besides ``/metrics`` and ``/healthz``.
    """
    everybody = Principal(settings.user, is_superuser=True, role=Role.ADMIN)
    with open_installation(settings) as installation:
        instance = installation.instance
        with process_context(instance, workspace, version("dagster-webserver")) as context:
            ours = [*routes, Route("/metrics", _metrics(installation)), Route("/healthz", _healthz)]
            webserver = Webserver(
                context,
                GuardedMutations(settings),
                before=[Mount(path_prefix, routes=ours), Route("/healthz", _healthz)] if path_prefix else ours,
                middleware=[
                    Middleware(Hardening, hosts=() if logins else LOOPBACK),
                    *(logins or [Middleware(EverybodyIs, principal=everybody)]),
                    Middleware(OnlyKnown, is_open=_is_open(path_prefix)),
                ],
                rules=[SizeRule],
                path_prefix=path_prefix,
            )
            yield make_app(webserver)


def _is_open(path_prefix: str) -> Callable[[str], bool]:
    paths = {"/healthz", f"{path_prefix}/healthz"}
    return paths.__contains__


async def _healthz(_: Request) -> Response:
    """Whether this process answers; what it depends on is the doctor's."""
    return JSONResponse({"status": "ok"}, headers={"Cache-Control": "no-store"})


def _metrics(installation: Installation) -> Callable[[Request], Awaitable[Response]]:
    async def metrics(request: Request) -> Response:
        def shown() -> str:
            with open_installation(installation.settings) as own:
                text: str = perform_for(own, request.user, "rest", ShowMetrics())
                return text

        try:
            return PlainTextResponse(await run_in_threadpool(shown), media_type=_PROMETHEUS)
        except FalconError as error:
            return JSONResponse({"error": str(error)}, status_code=503)

    return metrics
