"""The front as an ASGI application: our routes, then Dagster's, behind what hardens and who is known."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Match, Mount, Route
from starlette.types import Scope

from falcon_assets.errors import FalconError, SettingsError
from falcon_assets.features.colos.prism import Prism
from falcon_assets.features.logins.middleware import Authentication
from falcon_assets.features.logins.recognition import open_logins
from falcon_assets.features.metrics.exposition import ShowMetrics
from falcon_assets.history.dagster_internals.webserver import Webserver, make_app, process_context
from falcon_assets.model.access import Principal, Role
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.settings import Settings
from falcon_assets.surface.front.colos import one_face
from falcon_assets.surface.front.hardening import LOOPBACK, EverybodyIs, Hardening, OnlyKnown
from falcon_assets.surface.front.mutations import GuardedMutations
from falcon_assets.surface.front.query_limits import SizeRule
from falcon_assets.surface.pages import routes as pages
from falcon_assets.surface.rest.interfaces import interfaces
from falcon_assets.surface.served import ServedInstallation, open_served

HEALTH = "/healthz"
"""The path, without the prefix, at which everybody is told that the process answers."""
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


@contextmanager
def open_front(
    settings: Settings, workspace: Path, path_prefix: str = "", logins: Sequence[Middleware] | None = None
) -> Iterator[Starlette]:
    """The application, with the code locations of ``workspace`` open.

    Args:
        settings: Of this installation.
        workspace: The ``workspace.yaml``.
        path_prefix: Of all routes, such as ``/falcon-prod``; a proxy passes it on.
        logins: Middleware that sets ``scope["user"]`` to a Principal; None: that of FALCON_LOGINS, and where that is
            not set, everybody is the user of this process.

    Raises SettingsError where FALCON_LOGINS has problems, or another path than ``path_prefix``.
    """
    everybody = Principal(settings.user, is_superuser=True, role=Role.ADMIN)
    # Dagster makes the instance of its webserver impatient with the database, which ours is not.
    with (
        open_served(settings) as served,
        one_face(served, settings) as prism,
        open_installation(settings) as of_dagster,
        process_context(of_dagster.instance, workspace, version("dagster-webserver")) as context,
    ):
        ours, is_open = _routes(served, prism), {HEALTH, f"{path_prefix}{HEALTH}"}.__contains__
        if logins is None:
            logins = _logins(of_dagster, path_prefix, is_open)
        webserver = Webserver(
            context,
            GuardedMutations(served),
            before=[_Ours(path_prefix, routes=ours), Route(HEALTH, _healthz)] if path_prefix else ours,
            middleware=[
                Middleware(Hardening, hosts=() if logins else LOOPBACK),
                *(logins or [Middleware(EverybodyIs, principal=everybody)]),
                Middleware(OnlyKnown, is_open=is_open),
            ],
            rules=[SizeRule],
            path_prefix=path_prefix,
        )
        app = make_app(webserver)
        gc.collect()
        gc.freeze()  # what is open now stays: going through it again and again was a tenth of the time of requests
        yield app


def _logins(installation: Installation, path_prefix: str, is_open: Callable[[str], bool]) -> list[Middleware]:
    found = open_logins(installation)
    if found is None:
        return []
    if found.declared.prefix != path_prefix:
        raise SettingsError(
            f"FALCON_LOGINS: url has the path {found.declared.prefix or '/'!r}, and the front is served at "
            f"{path_prefix or '/'!r}: --path-prefix must be the same"
        )
    return [Middleware(Authentication, logins=found, is_open=is_open)]


class _Ours(Mount):
    """Leaves to Dagster, whose paths begin alike, what is none of ours."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, below = super().matches(scope)
        inner = {**scope, **below}
        known = match is not Match.NONE and any(one.matches(inner)[0] is not Match.NONE for one in self.routes)
        return (match, below) if known else (Match.NONE, {})


def _routes(served: ServedInstallation, prism: Prism | None) -> list[BaseRoute]:
    """Ours, which come before Dagster's."""

    async def metrics(request: Request) -> Response:
        try:
            text: str = await served.perform(request.user, "rest", ShowMetrics())
        except FalconError as error:
            return JSONResponse({"error": str(error)}, status_code=503)
        return PlainTextResponse(text, media_type=_PROMETHEUS)

    return [Route("/metrics", metrics), Route(HEALTH, _healthz), *interfaces(served), *pages.routes(served, prism)]


async def _healthz(_: Request) -> Response:
    """Whether this process answers; what it depends on is the doctor's."""
    return JSONResponse({"status": "ok"}, headers={"Cache-Control": "no-store"})
