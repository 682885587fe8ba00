"""Requests that other sites could have made are refused, and pages cannot run what is stored."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from hashlib import sha256
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request

from falcon_assets.model.access import Principal

COOKIE, FIELD = "falcon_form", "form_token"
MOST_BYTES = 1_000_000
"""Of a request: a definition, not a file."""
_FORM = "application/x-www-form-urlencoded"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class RefusedError(Exception):
    """``status`` is that of the answer; the text is for people."""

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(text)


def new_secret() -> str:
    return secrets.token_urlsafe(32)


def token_of(secret: str, who: Principal) -> str:
    """What a form of this browser has for this user: neither another site nor another user knows it."""
    return hmac.new(secret.encode(), f"{who.way}\0{who.name}".encode(errors="surrogatepass"), sha256).hexdigest()


def require_same_origin(request: Request) -> None:
    """Raises RefusedError where another site may have made the request, or nobody says which one did."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None and site != "same-origin":
        raise RefusedError(403, "Requests from pages of others are refused.")
    if site is None and (origin is None or urlsplit(origin).netloc != request.headers.get("host")):
        raise RefusedError(403, "Requests from pages of others are refused, and of browsers that do not say which.")


async def form_of(request: Request, who: Principal) -> list[tuple[str, str]]:
    """The fields of a form that we made; raises RefusedError for any other."""
    require_same_origin(request)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise RefusedError(415, f"A form is sent as {_FORM}.")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise RefusedError(413, f"A form has at most {MOST_BYTES:,} bytes.")
    try:
        fields = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=1_000)
    except ValueError:
        raise RefusedError(400, "The form cannot be read.") from None
    secret, given = request.cookies.get(COOKIE, ""), dict(fields).get(FIELD, "")
    if not secret or not hmac.compare_digest(token_of(secret, who).encode(), given.encode(errors="surrogatepass")):
        raise RefusedError(403, "This form is of another login, or too old: open the page again, and send it anew.")
    return [(name, value.replace("\r\n", "\n")) for name, value in fields if name != FIELD]
