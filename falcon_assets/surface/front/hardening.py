"""What no request may do, whoever sends it: pure ASGI, so that websockets are asked as well."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from falcon_assets.model.access import Principal

MOST_BYTES = 8 * 1024 * 1024
"""Of a body; a run's configuration and an installation's definitions are far smaller."""
BODY_SECONDS = 30.0
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_OF_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain", "")
"""What a browser sends to a stranger without asking."""
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "strict-origin-when-cross-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Content-Security-Policy": "frame-ancestors 'self'; base-uri 'self'; object-src 'none'",
}
_GRAPHQL = (415, "GraphQL is asked by POST with Content-Type: application/json")
_HSTS = "max-age=31536000"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass
class Hardening:
    """Refuses foreign origins, changes by GET, and bodies that are too large or too slow; adds security headers.

    Attributes:
        hosts: The names that the front may be called by, or by any where these are empty: without logins a stranger's
            page must not reach it by a name of its own that leads to this machine.
    """

    app: ASGIApp
    hosts: Collection[str] = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        problem = self._problem(scope)
        if scope["type"] == "websocket":
            if problem is not None:
                await send({"type": "websocket.close", "code": 1008, "reason": problem[1]})
                return
            await self.app(scope, receive, send)
            return
        send = _with_headers(scope, send)
        if problem is not None:
            await JSONResponse({"error": problem[1]}, status_code=problem[0])(scope, receive, send)
            return
        await self.app(scope, _limited(receive), send)

    def _problem(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self.hosts and urlsplit(f"//{host}").hostname not in self.hosts:
            return 421, f"this front is not called {host!r}"
        if scope["type"] == "http" and scope["method"] in _READS:
            shows = not scope["path"].endswith("/graphql") or "text/html" in headers.get("accept", "")
            return None if shows else _GRAPHQL
        return _why_foreign(headers, host) or (_why_not_typed(scope, headers) if scope["type"] == "http" else None)


def _why_foreign(headers: Headers, host: str) -> tuple[int, str] | None:
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
        return 403, f"requests from pages of {origin} are refused"
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return 403, "requests from pages of others are refused"
    return None


def _why_not_typed(scope: Scope, headers: Headers) -> tuple[int, str] | None:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if "origin" not in headers and kind in _OF_FORMS and not _is_empty(headers):
        return 415, "say what the body is, such as Content-Type: application/json"
    return _GRAPHQL if scope["path"].endswith("/graphql") and kind != "application/json" else None


def _is_empty(headers: Headers) -> bool:
    return headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers


def _limited(receive: Receive) -> Receive:
    """Counts what comes, whatever the headers declare, and waits for all of it for a while only."""
    counted, over = 0, False
    ends = asyncio.get_running_loop().time() + BODY_SECONDS

    async def limited() -> Message:
        nonlocal counted, over
        if over:
            return await receive()  # of the end of the connection
        try:
            async with asyncio.timeout_at(ends):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408, "the body did not come in time") from None
        counted += len(message.get("body", b""))
        if counted > MOST_BYTES:
            raise HTTPException(413, f"the body has more than {MOST_BYTES} bytes")
        over = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    return limited


def _with_headers(scope: Scope, send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            if scope["scheme"] == "https":
                headers.setdefault("Strict-Transport-Security", _HSTS)
        await send(message)

    return sending


@dataclass
class OnlyKnown:
    """Refuses who has not said who they are, by whatever way; ``is_open`` says which paths are for everybody."""

    app: ASGIApp
    is_open: Callable[[str], bool]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = scope["type"] in ("http", "websocket")
        if not asked or isinstance(scope.get("user"), Principal) or self.is_open(scope["path"]):
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": "log in first"})
        else:
            await JSONResponse({"error": "log in first"}, status_code=401)(scope, receive, send)


@dataclass
class EverybodyIs:
    """Who everybody is where nobody logs in."""

    app: ASGIApp
    principal: Principal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            scope["user"] = self.principal
        await self.app(scope, receive, send)
