"""The pages to log in and out: plain forms, without scripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from anyio import to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from falcon_assets.errors import FalconError
from falcon_assets.features.logins.browser import (
    ATTEMPT,
    FORM_FIELD,
    SESSION,
    cookie,
    form_token,
    is_from_elsewhere,
    is_own_form,
    safe_place,
    set_cookie,
)
from falcon_assets.features.logins.identity import LoginRefusedError, TooManyAttemptsError
from falcon_assets.features.logins.recognition import LOGIN_PATH, Logins
from falcon_assets.features.logins.store import new_secret
from falcon_assets.features.logins.ways.oidc import Attempt
from falcon_assets.features.logins.ways.proxy import client_address

_FOLDER = Path(__file__).parent / "page"
_MOST_BYTES = 16_384
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'",
    "Referrer-Policy": "same-origin",  # with no-referrer, forms would not say their origin
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_ELSEWHERE = "this form is too old, or comes from another site: send it again"
_AWAY = "nobody can log in now, as something else does not answer: {}"


def login_pages(logins: Logins) -> Starlette:
    """The application with these pages."""
    pages = LoginPages(logins)
    login = f"{logins.declared.prefix}{LOGIN_PATH}"
    routes = [
        Route(login, pages.form, methods=["GET"]),
        Route(login, pages.by_password, methods=["POST"]),
        Route(f"{login}.css", pages.style, methods=["GET"]),
        Route(f"{login}/oidc", pages.to_provider, methods=["GET"]),
        Route(f"{login}/oidc/callback", pages.from_provider, methods=["GET"]),
        Route(f"{logins.declared.prefix}/falcon/logout", pages.leave, methods=["POST"]),
    ]
    return Starlette(routes=routes)


class LoginPages:
    """The pages; what they wait for is done in threads."""

    def __init__(self, logins: Logins) -> None:
        self.logins, self.declared = logins, logins.declared

    async def form(self, request: Request) -> Response:
        secret = cookie(request.scope, SESSION, self.declared)
        try:
            user = await to_thread.run_sync(self.logins.of_session, secret) if secret else None
        except FalconError:
            user = None
        if user is not None:
            return self._shown({"user": user, "token": form_token(secret)})
        return self._login_form(request, request.query_params.get("next", ""))

    async def by_password(self, request: Request) -> Response:
        fields = await _fields(request)
        place = fields.get("next", "")
        if not self.declared.has_form:
            raise HTTPException(404)
        if not self._is_own(request, ATTEMPT, fields):
            return self._login_form(request, place, 403, _ELSEWHERE)
        name, password = fields.get("name", ""), fields.get("password", "")
        return await self._entered(
            request, place, lambda: self.logins.by_password(name, password, self._address(request))
        )

    async def to_provider(self, request: Request) -> Response:
        """The secrets of the attempt are made of a cookie, so that nobody else can end it."""
        provider, place = self.logins.provider, request.query_params.get("next", "")
        if provider is None:
            raise HTTPException(404)
        secret = f"{new_secret()}.{safe_place(place, self.declared.prefix)}"
        try:
            url = await to_thread.run_sync(provider.begin, Attempt(secret))
        except FalconError as error:
            return self._login_form(request, place, 503, _AWAY.format(error))
        response = RedirectResponse(url, 303, {"Cache-Control": "no-store"})
        set_cookie(response, ATTEMPT, secret, self.declared)
        return response

    async def from_provider(self, request: Request) -> Response:
        if self.logins.provider is None:
            raise HTTPException(404)
        attempt = Attempt(cookie(request.scope, ATTEMPT, self.declared))
        given, place = request.query_params, attempt.secret.partition(".")[2]

        address = self._address(request)
        return await self._entered(request, place, lambda: self.logins.by_provider(given, attempt, address))

    async def leave(self, request: Request) -> Response:
        fields, secret = await _fields(request), cookie(request.scope, SESSION, self.declared)
        if secret and not self._is_own(request, SESSION, fields):
            return self._login_form(request, "", 403, _ELSEWHERE)
        await to_thread.run_sync(self.logins.leave, secret)
        response = RedirectResponse(f"{self.declared.prefix}{LOGIN_PATH}", 303, {"Cache-Control": "no-store"})
        set_cookie(response, SESSION, "", self.declared)
        return response

    async def style(self, _: Request) -> Response:
        text = (_FOLDER / "login.css").read_text(encoding="utf-8")
        return Response(text, media_type="text/css", headers={"X-Content-Type-Options": "nosniff"})

    async def _entered(self, request: Request, place: str, enter: Callable[[], str]) -> Response:
        """Opens a session with a new id: whatever the browser had before is nothing any more."""
        old = cookie(request.scope, SESSION, self.declared)

        def work() -> str:
            secret = enter()
            if old:
                self.logins.leave(old)
            return secret

        try:
            secret = await to_thread.run_sync(work)
        except TooManyAttemptsError as error:
            return self._login_form(request, place, 429, str(error))
        except LoginRefusedError as error:
            return self._login_form(request, place, 403, str(error))
        except FalconError as error:
            return self._login_form(request, place, 503, _AWAY.format(error))
        response = RedirectResponse(safe_place(place, self.declared.prefix), 303, {"Cache-Control": "no-store"})
        set_cookie(response, SESSION, secret, self.declared)
        set_cookie(response, ATTEMPT, "", self.declared)
        return response

    def _login_form(self, request: Request, place: str, status: int = 200, error: str = "") -> Response:
        secret = cookie(request.scope, ATTEMPT, self.declared) or new_secret()
        place = safe_place(place, self.declared.prefix)
        shown = {"error": error, "next": place, "token": form_token(secret), "user": None}
        response = self._shown(shown, status)
        set_cookie(response, ATTEMPT, secret, self.declared)
        if status == 429:
            response.headers["Retry-After"] = "900"
        return response

    def _shown(self, values: Mapping[str, Any], status: int = 200) -> Response:
        known = {"declared": self.declared, "field": FORM_FIELD, "login": f"{self.declared.prefix}{LOGIN_PATH}"}
        logout = f"{self.declared.prefix}/falcon/logout"
        return HTMLResponse(_template().render(**known, logout=logout, **values), status, dict(_HEADERS))

    def _is_own(self, request: Request, name: str, fields: Mapping[str, str]) -> bool:
        elsewhere = is_from_elsewhere(request.scope, self.declared, needs_origin=False)
        return not elsewhere and is_own_form(cookie(request.scope, name, self.declared), fields)

    def _address(self, request: Request) -> str:
        return client_address(request.scope, self.declared.proxies)


async def _fields(request: Request) -> dict[str, str]:
    """Raises HTTPException for what is no small form."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise HTTPException(415)
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BYTES:
            raise HTTPException(413)
    try:
        return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=20, errors="strict"))
    except ValueError:
        raise HTTPException(400) from None


@cache
def _template() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - an extra

    made = Environment(loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined)
    return made.get_template("login.html")
