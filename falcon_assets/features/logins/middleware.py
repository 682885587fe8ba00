"""The ASGI middleware of logins: it sets ``scope["user"]`` to a Principal, or says how to log in."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import TypeVar

from anyio import CapacityLimiter, create_task_group, sleep, to_thread
from sqlalchemy.exc import SQLAlchemyError
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from falcon_assets.errors import SettingsError
from falcon_assets.features.logins.browser import SESSION, cookie, is_from_elsewhere, login_url
from falcon_assets.features.logins.identity import LoginRefusedError
from falcon_assets.features.logins.pages import login_pages
from falcon_assets.features.logins.recognition import LOGIN_PATH, NO_ROLE, Logins
from falcon_assets.features.logins.ways.certificates import named_by_certificate
from falcon_assets.features.logins.ways.on_behalf import limited, named_on_behalf
from falcon_assets.features.logins.ways.proxy import StrangersHeaderError, client_address, named_by_proxy
from falcon_assets.model.access import Principal

T = TypeVar("T")
FORM_SECRET = "falcon.form_secret"  # noqa: S105 - the name of a key
"""Key of the scope with what forms of this user are made safe with (:func:`.form_token`); only after a login."""
RECOGNIZED_SECONDS = 30.0
"""How long a websocket stays open after its user was logged out, or lost the role."""
_CLOSE = {"type": "websocket.close", "code": 1008, "reason": "log in first"}
_CLOSED = "another site may not do that with your login"


class Authentication:
    """Lets through whom :class:`Logins` recognizes, and serves the pages to log in and out.

    Args:
        app: The rest of the front.
        logins: The ways in.
        is_open: Which paths are for everybody, without a user.
    """

    def __init__(self, app: ASGIApp, logins: Logins, is_open: Callable[[str], bool] = lambda path: False) -> None:
        self.app = app
        self.logins, self.declared, self.is_open = logins, logins.declared, is_open
        self._pages = login_pages(logins)
        self._login = f"{self.declared.prefix}{LOGIN_PATH}"
        self._one = CapacityLimiter(1)  # a session costs a fraction of a millisecond: one connection is always warm

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or self.is_open(scope["path"]):
            await self.app(scope, receive, send)
            return
        scope.pop("user", None)
        if scope["type"] == "http" and scope["path"].startswith(
            (f"{self._login}", f"{self.declared.prefix}/falcon/logout")
        ):
            await self._pages(scope, receive, send)
            return
        try:
            refusal = await self._refusal(scope)
        except (SettingsError, SQLAlchemyError):
            refusal = _problem(503, "the database cannot be reached: nobody can be recognized")
        if refusal is None and scope["type"] == "websocket":
            await self._while_recognized(scope, receive, send)
        elif refusal is None:
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send(_CLOSE)
        else:
            await refusal(scope, receive, send)

    async def _while_recognized(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Ends a websocket, which may be open for days, when its user is not recognized any more."""
        known = dict(scope)
        async with create_task_group() as tasks:

            async def watch() -> None:
                refusal = None
                while refusal is None:
                    await sleep(RECOGNIZED_SECONDS)
                    with suppress(SettingsError, SQLAlchemyError):  # nobody knows: it stays
                        refusal = await self._refusal(known)
                await send(_CLOSE)
                tasks.cancel_scope.cancel()

            tasks.start_soon(watch)
            await self.app(scope, receive, send)
            tasks.cancel_scope.cancel()

    async def _refusal(self, scope: Scope) -> Response | None:
        """None: the user is recognized."""
        address = client_address(scope, self.declared.proxies)
        try:
            user, is_ambient = await self._recognized(scope)
        except LoginRefusedError as error:
            await self._in_thread(partial(self.logins.refused, error, address))
            return _problem(403 if str(error) == NO_ROLE else 401, str(error))
        if user is None:
            return self._to_login(scope)
        if is_ambient and is_from_elsewhere(scope, self.declared, needs_origin=FORM_SECRET in scope):
            return _problem(403, _CLOSED)
        scope["user"] = user
        return None

    async def _recognized(self, scope: Scope) -> tuple[Principal | None, bool]:
        """The user, and whether browsers prove who it is by themselves; raises LoginRefusedError."""
        scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            asker = await self._in_thread(lambda: self.logins.of_token(token.strip()))
            return self._for_whom(scope, asker), False
        proxy, stranger = self.declared.proxy, None
        try:
            if proxy and (who := named_by_proxy(scope, proxy, self.declared.proxies)):
                return self.logins.role_of(who), True
        except StrangersHeaderError as error:  # it counts as if it were not there
            stranger = error
        if self.declared.certificates and (who := named_by_certificate(scope, self.declared.certificates)):
            asker = self.logins.role_of(who)
            return (user := self._for_whom(scope, asker)), user is asker
        if secret := cookie(scope, SESSION, self.declared):
            scope[FORM_SECRET] = secret
            return await self._in_thread(lambda: self.logins.of_session(secret)), True
        if stranger:
            raise stranger
        return None, True

    def _for_whom(self, scope: Scope, asker: Principal) -> Principal:
        """The user for whom ``asker`` asks; raises LoginRefusedError."""
        named = named_on_behalf(scope, asker, self.declared.proxy_users)
        return asker if named is None else limited(self.logins.role_of(named[0]), named[1])

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await to_thread.run_sync(work, limiter=self._one)

    def _to_login(self, scope: Scope) -> Response:
        wants_page = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        if wants_page and "text/html" in Headers(scope=scope).get("accept", ""):
            return RedirectResponse(login_url(scope, self.declared.prefix, LOGIN_PATH), 303)
        return _problem(401, "log in first: with a token in the header Authorization, or in a browser")


def _problem(status: int, text: str) -> Response:
    """As RFC 9457 has it."""
    more = {"WWW-Authenticate": 'Bearer realm="falcon"'} if status == 401 else {}
    content = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": text}
    return JSONResponse(content, status, {"Cache-Control": "no-store", **more}, media_type="application/problem+json")
