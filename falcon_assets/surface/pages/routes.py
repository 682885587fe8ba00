"""The routes of the pages."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from falcon_assets.errors import (
    DeniedError,
    EntityInUseError,
    EntityStatusError,
    FalconError,
    ReadOnlyError,
    UnknownEntityError,
    UnknownInstanceError,
)
from falcon_assets.features.colos.asking import ColoAwayError, UnansweredError
from falcon_assets.features.colos.prism import Prism
from falcon_assets.model.access import Principal, Role
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.page_links import PLACE
from falcon_assets.surface.pages import changes, data, entities, flows, instances
from falcon_assets.surface.pages.protection import COOKIE, HEADERS, RefusedError, form_of, new_secret, token_of
from falcon_assets.surface.pages.visit import ZONE_COOKIE, PageVisit, View, zone_named
from falcon_assets.surface.served import BusyError, ServedInstallation, TimedOutError

if TYPE_CHECKING:
    from starlette.types import Scope

VIEWS: Mapping[str, View] = {
    "": instances.today,
    "instances": instances.grid,
    "instances/list": instances.listed,
    "instances/cell": instances.cell,
    "instance": instances.one,
    "instance/triage": instances.triage,
    "instance/logs": instances.logs,
    "instance/data": instances.data,
    "change": changes.plan,
    "entities": entities.listed,
    "entity": entities.one,
    "entity/diff": entities.diff,
    "entity/edit": entities.edit,
    "flows": flows.listed,
    "flow": flows.one,
    "templates": flows.templates,
    "template": flows.template,
    "quality": data.feeds,
    "quality/instance": data.instance,
    "lineage": data.lineage,
    "lineage/graph": data.graph,
}
"""Path below ``/falcon`` -> what is shown there."""
FORMS: Mapping[str, View] = {
    "change/confirmed": changes.confirmed,
    "entity/check": entities.check,
    "entity/save": entities.save,
    "template/check": flows.check_template,
    "template/save": flows.save_template,
}
"""Path -> what a form that is sent there does."""
_OF_ONE_COLO = (
    *("quality", "quality/instance", "lineage", "lineage/graph"),
    *("templates", "template", "template/check", "template/save"),
)
"""What cannot be put together of several colos: a front of them leads to those of their own fronts."""
_YEAR = 365 * 24 * 3600
_STATUS: Mapping[type[FalconError], int] = {
    DeniedError: 403,
    UnknownEntityError: 404,
    UnknownInstanceError: 404,
    EntityInUseError: 409,
    EntityStatusError: 409,
    BusyError: 503,
    ColoAwayError: 503,
    ReadOnlyError: 503,
    TimedOutError: 504,
    UnansweredError: 504,
}


def routes(served: ServedInstallation, prism: Prism | None = None) -> list[BaseRoute]:
    """The pages, at ``/falcon``; who asks is in ``scope["user"]``, a :class:`Principal`.

    ``prism``: of a front of several colos.
    """
    own: list[BaseRoute] = [Mount("/static", _Static(directory=Path(__file__).parent / "static"))]
    for method, those in (("GET", VIEWS), ("POST", FORMS)):
        for path, view in those.items():
            shown = _of_one_colo if prism and path in _OF_ONE_COLO else view
            own.append(Route(f"/{path}", _page(served, path, shown, prism), methods=[method]))
    own += [Route("/zone", _zone, methods=["POST"]), Route("/{path:path}", _page(served, "", _nothing, prism))]
    return [Route(PLACE, _beginning), Mount(PLACE, routes=own)]


class _Static(StaticFiles):
    def file_response(self, *given: Any, **more: Any) -> Response:
        response = super().file_response(*given, **more)
        response.headers.update({**HEADERS, "Cache-Control": "no-cache"})
        return response


def _page(served: ServedInstallation, path: str, view: View, prism: Prism | None) -> Any:
    async def answer(request: Request) -> Response:
        secret = request.cookies.get(COOKIE) or new_secret()
        who = request.scope.get("user")
        form: list[tuple[str, str]] = []
        refused: RefusedError | None = None
        if not isinstance(who, Principal):
            refused, who = RefusedError(401, "You are not logged in."), Principal("", role=Role.VIEWER)
        elif request.method == "POST":
            try:
                form = await form_of(request, who)
            except RefusedError as error:
                refused = error
        person = who

        def shown(installation: Installation) -> Response:
            visit = PageVisit(
                installation,
                person,
                _root(request.scope),
                parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True, errors="replace"),
                form,
                token_of(secret, person),
                zone_named(request.cookies.get(ZONE_COOKIE, "")),
                request.headers.get("hx-request") == "true",
                path,
                prism,
            )
            if refused is not None:
                return _error(visit, refused.status, str(refused))
            try:
                return view(visit)
            except FalconError as error:
                return _error(visit, _status(error), str(error))

        try:
            response = await served.call(shown)
        except (BusyError, TimedOutError) as error:
            response = Response(str(error), _status(error), media_type="text/plain")
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        if COOKIE not in request.cookies:
            is_secure = request.url.scheme == "https"
            response.set_cookie(
                COOKIE, secret, httponly=True, samesite="strict", secure=is_secure, path=_place(request)
            )
        return response

    return answer


def _error(visit: PageVisit, status: int, text: str) -> Response:
    template = "part_error.html" if visit.is_part else "error.html"
    # htmx shows what it is answered whatever the status is; a part that fails is a part of the page.
    return visit.page(template, http_status=status, text=text, title=HTTPStatus(status).phrase)


def _status(error: FalconError) -> int:
    return next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 400)


def _root(scope: Scope) -> str:
    root: str = scope.get("root_path", "")
    return root.removesuffix(PLACE)


def _place(request: Request) -> str:
    return _root(request.scope) + PLACE


def _of_one_colo(visit: PageVisit) -> Response:
    """Leads to the same page of colos, of the one where it is known."""
    assert visit.prism is not None
    known = visit.value("colo") or visit.places.get(visit.value("cluster"))
    colos = [known] if known in visit.prism.names else visit.prism.names
    return visit.page("of_one_colo.html", colos=colos, page=visit.path)


def _nothing(visit: PageVisit) -> Response:
    return _error(visit, 404, "There is no such page.")


async def _beginning(request: Request) -> Response:
    return RedirectResponse(f"{request.scope.get('root_path', '')}{PLACE}/", 307)


async def _zone(request: Request) -> Response:
    """Keeps the chosen time zone in the browser, and goes back to the page."""
    who = request.scope.get("user")
    try:
        form = dict(await form_of(request, who if isinstance(who, Principal) else Principal("")))
    except RefusedError as error:
        return Response(str(error), error.status, media_type="text/plain", headers=dict(HEADERS))
    back = urlsplit(form.get("back", ""))
    place = _place(request)
    url = back.path if back.path.startswith(f"{place}/") and not back.netloc else f"{place}/"
    response = RedirectResponse(url + (f"?{back.query}" if back.query else ""), 303)
    zone = form.get("zone", "")
    name = zone if str(zone_named(zone)) == zone else "UTC"
    response.set_cookie(ZONE_COOKIE, name, max_age=_YEAR, samesite="lax", path=place)
    return response
