"""The routes of REST: a request becomes an operation, its result JSON."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from falcon_assets.catalog.yaml_files.yaml_text import as_document
from falcon_assets.errors import FalconError, UsageError, printable
from falcon_assets.features.entities.given import stored_definition
from falcon_assets.features.entities.questions import ShowEntity
from falcon_assets.model.access import Principal
from falcon_assets.operations.audit import perform_for
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Operation, data_of
from falcon_assets.operations.request_origin import requests_from
from falcon_assets.surface.rest.endpoints import AS_RESULT, Endpoint, dumped, endpoints
from falcon_assets.surface.rest.idempotency import HEADER, REPLAYED, GivenAnswer, answered_once, fingerprint
from falcon_assets.surface.rest.openapi import openapi
from falcon_assets.surface.rest.page import page
from falcon_assets.surface.rest.problems import problem, problem_of, unexpected
from falcon_assets.surface.rest.requests import COLO, body_of, operation_of
from falcon_assets.surface.served import ServedInstallation

FAILED = "Falcon-Failed"
"""Header of results that are failures, for which the command exits with 1."""
UNANSWERED = "Falcon-Unanswered"
"""Header with the colos that did not answer, so that what they have is missing."""
Handler: TypeAlias = Callable[[Request], Awaitable[Response]]
_JSON = "application/json"


def routes(served: ServedInstallation) -> list[BaseRoute]:
    """The routes below the prefix of the interface; ``scope["user"]`` says who asks, as a Principal."""
    by_path: dict[str, dict[str, Endpoint]] = defaultdict(dict)
    for one in endpoints():
        by_path[one.path][one.method] = one
    described = json.dumps(openapi()).encode()

    async def show_openapi(request: Request, _: Principal) -> Response:
        return Response(described, media_type=_JSON)

    async def show_page(request: Request, _: Principal) -> Response:
        return Response(page(), media_type="text/html")

    return [
        Route("/openapi.json", guarded(show_openapi), methods=["GET"]),
        Route("/", guarded(show_page), methods=["GET"]),
        *(_route(served, path, own) for path, own in by_path.items()),
        Route("/{path:path}", guarded(_nothing)),
    ]


async def _nothing(request: Request, _: Principal) -> Response:
    return problem_of(404, f"there is nothing at {printable(request.url.path)[:200]}: see openapi.json")


def guarded(answer: Callable[[Request, Principal], Awaitable[Response]]) -> Handler:
    """A handler for who is known; what is wrong becomes a problem."""

    async def handle(request: Request) -> Response:
        who = request.scope.get("user")
        if not isinstance(who, Principal):
            return problem_of(401, "say who you are: log in, or send a token", headers={"WWW-Authenticate": "Bearer"})
        try:
            return await answer(request, who)
        except FalconError as error:
            return problem(error)
        except HTTPException as error:  # of those who count bytes and time before us
            return problem_of(error.status_code, error.detail)
        except ClientDisconnect:
            return problem_of(400, "the client is gone")
        except Exception as error:
            return unexpected(error)

    return handle


def _route(served: ServedInstallation, path: str, own: Mapping[str, Endpoint]) -> Route:
    async def answer(request: Request, who: Principal) -> Response:
        endpoint = own.get("GET" if request.method == "HEAD" else request.method)
        if endpoint is None:
            allowed = ", ".join(sorted(own))
            return problem_of(405, f"{request.method} is not for this path: {allowed} is", headers={"Allow": allowed})
        body = await body_of(request)
        asked = operation_of(endpoint, request, body)
        if COLO in request.query_params and COLO not in endpoint.fields and served.performer is None:
            raise UsageError("colo: this server is none of several colos: leave it out")
        key = request.headers.get(HEADER) if endpoint.changes else None
        done = await served.call(lambda installation: _performed(installation, who, request, asked, key, body))
        return Response(done.body, done.status, done.headers)

    made = Route(path, guarded(answer))
    made.methods = None  # each is answered, with a problem where there is none
    return made


def _performed(
    installation: Installation, who: Principal, request: Request, asked: Operation, key: str | None, body: bytes
) -> GivenAnswer:
    colos = tuple(name for one in request.query_params.getlist(COLO) for name in one.split(",") if name)

    is_plain = AS_RESULT not in request.headers.get("accept", "")

    def perform() -> GivenAnswer:
        try:
            if isinstance(asked, ShowEntity) and "yaml" in request.headers.get("accept", ""):
                text = _definition(installation, who, asked, colos)
                return GivenAnswer(200, {"Content-Type": "application/yaml"}, text)
            answer = _answer(request, asked, perform_for(installation, who, "rest", asked, colos, only_data=is_plain))
            return replace(answer, headers={**answer.headers, **_unanswered(installation)})
        except FalconError as error:
            found = problem(error)
        except Exception as error:
            found = unexpected(error)
        return GivenAnswer(found.status_code, dict(found.headers), bytes(found.body))

    if key is None:
        return perform()
    said = fingerprint(request.method.encode(), str(request.url.path).encode(), str(request.url.query).encode(), body)
    found, again = answered_once(installation.tables, who.name, key, said, perform)
    return GivenAnswer(found.status, {**found.headers, REPLAYED: "true"}, found.body) if again else found


def _unanswered(installation: Installation) -> dict[str, str]:
    named = ", ".join(quote(one, safe="") for one in installation.unanswered)
    return {UNANSWERED: named} if named else {}


def _definition(installation: Installation, who: Principal, asked: ShowEntity, colos: tuple[str, ...]) -> bytes:
    """As it is written, with its comments; of a colo only what it says."""
    if installation.performer is not None:
        return as_document(perform_for(installation, who, "rest", asked, colos).definition).encode()
    with requests_from("rest", principal=who):
        return stored_definition(installation, asked.name, asked.kind).encode()


def _answer(request: Request, asked: Operation, result: Any) -> GivenAnswer:
    headers = {FAILED: "true"} if getattr(result, "failed", False) else {}
    status = 207 if getattr(result, "partial", False) else 200
    if isinstance(result, str):
        return GivenAnswer(status, {**headers, "Content-Type": "text/plain; charset=utf-8"}, result.encode())
    if isinstance(result, Iterator):
        result = [*result]
    whole = dumped(type(asked), result) if AS_RESULT in request.headers.get("accept", "") else None
    if whole is not None:
        return GivenAnswer(status, {**headers, "Content-Type": AS_RESULT}, whole.encode())
    data = data_of(result)
    if isinstance(data, dict) and data.get("next") is not None and "items" in data:
        following = "after" if "after" in type(asked).model_fields else "offset"
        others = [(name, value) for name, value in request.query_params.multi_items() if name != following]
        query = urlencode([*others, (following, str(data["next"]))])
        headers["Link"] = f'<{request.url.path}?{query}>; rel="next"'
    return GivenAnswer(status, {**headers, "Content-Type": _JSON}, json.dumps(data).encode())
