"""The server of the front, until the process is asked to end."""

from __future__ import annotations

import ssl
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from falcon_assets.surface.front.protocol import FrontProtocol

_WEBSOCKET_BYTES = 256 * 1024
"""Of a message: a query of a subscription."""
_KEEP_SECONDS, _END_SECONDS = 20, 5


def server_config(app: ASGIApp, host: str, port: int, **options: Any) -> uvicorn.Config:
    """Who a request comes from is the peer: which proxies may say another is for logins to know."""
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=FrontProtocol,
        proxy_headers=False,
        server_header=False,
        log_level="warning",
        ws_max_size=_WEBSOCKET_BYTES,
        timeout_keep_alive=_KEEP_SECONDS,
        timeout_graceful_shutdown=_END_SECONDS,
        **options,
    )


def tls_options(certificate: str, key: str, clients: str | None = None) -> dict[str, Any]:
    """Options of :func:`server_config`; ``clients``: the authorities of clients' certificates, which they may have."""
    given: dict[str, Any] = {"ssl_certfile": certificate, "ssl_keyfile": key}
    if clients is not None:
        given |= {"ssl_ca_certs": clients, "ssl_cert_reqs": ssl.CERT_OPTIONAL}
    return given
