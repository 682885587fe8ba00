"""What browsers are trusted with: cookies, forms, and where they may be sent afterwards."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import Response
from starlette.types import Scope

from falcon_assets.features.logins.declaration import LoginsDeclaration

SESSION, ATTEMPT = "falcon_session", "falcon_login"
"""Cookies: of a session; of a login that is under way."""
_ATTEMPT_SECONDS = 600
_SAFE = ("GET", "HEAD", "OPTIONS")
FORM_FIELD = "form_token"


def cookie(scope: Scope, name: str, declared: LoginsDeclaration) -> str:
    """The value of a cookie of ours; "" without one."""
    text = "; ".join(Headers(scope=scope).getlist("cookie"))
    return cookie_parser(text).get(_full_name(name, declared), "")


def set_cookie(response: Response, name: str, value: str, declared: LoginsDeclaration) -> None:
    """``value`` empty: the browser forgets it."""
    seconds = int(declared.sessions.absolute.length.total_seconds()) if name == SESSION else _ATTEMPT_SECONDS
    age = seconds if value else 0
    options = {"path": "/", "secure": declared.is_secure, "httponly": True}
    response.set_cookie(_full_name(name, declared), value, max_age=age, samesite="lax", **options)  # type: ignore[arg-type]


def _full_name(name: str, declared: LoginsDeclaration) -> str:
    """With TLS, no other host of the domain can set it."""
    return f"__Host-{name}" if declared.is_secure else name


def form_token(secret: str) -> str:
    """What a form must send along: other sites do not know it."""
    return base64.urlsafe_b64encode(hashlib.sha256(f"form {secret}".encode()).digest()).decode().rstrip("=")


def is_own_form(secret: str, fields: Mapping[str, str]) -> bool:
    return bool(secret) and is_same(fields.get(FORM_FIELD, ""), form_token(secret))


def is_same(given: str, known: str) -> bool:
    """Takes as long wherever they differ."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), known.encode())


def is_from_elsewhere(scope: Scope, declared: LoginsDeclaration, *, needs_origin: bool) -> bool:
    """Whether another site made the browser change something, or open a websocket, as its user.

    ``needs_origin``: who is known by a cookie is a browser, and those say where a request comes from.
    """
    if scope["type"] == "http" and scope["method"] in _SAFE:
        return False
    headers = Headers(scope=scope)
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        return site != "same-origin"
    if origin is not None:
        return origin.lower() != declared.origin
    return needs_origin


def safe_place(path: str, prefix: str) -> str:
    """A path of this site, to go to after a login; whatever else is asked for becomes its first page."""
    is_path = path.startswith("/") and not path.startswith("//")
    if is_path and "\\" not in path and all(" " < char < "\x7f" for char in path):
        return path
    return f"{prefix}/"


def login_url(scope: Scope, prefix: str, path: str) -> str:
    """The login page, which leads back to what was asked for."""
    query = scope.get("query_string", b"").decode("latin-1")
    asked = scope["path"] + (f"?{query}" if query else "")
    return f"{prefix}{path}?next={quote(asked, safe='/')}"
