"""The server of the front, until the process is asked to end."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from falcon_assets.errors import SettingsError
from falcon_assets.settings import TlsFiles
from falcon_assets.surface.front.protocol import FrontProtocol, FrontWebsocket

_WEBSOCKET_BYTES = 256 * 1024
"""Of a message: a query of a subscription."""
_KEEP_SECONDS, _END_SECONDS = 20, 5
_CONNECTIONS = 1_000
"""Others are told to come again later."""


def server_config(app: ASGIApp, host: str, port: int, **options: Any) -> uvicorn.Config:
    """Who a request comes from is the peer: which proxies may say another is for logins to know."""
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=FrontProtocol,
        ws=FrontWebsocket,
        proxy_headers=False,
        server_header=False,
        log_level="warning",
        ws_max_size=_WEBSOCKET_BYTES,
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=_KEEP_SECONDS,
        timeout_graceful_shutdown=_END_SECONDS,
        **options,
    )


def run_server(app: ASGIApp, host: str, port: int, tls: TlsFiles | None, users: Path | None = None) -> None:
    """Until the process is asked to end; raises SettingsError if the port is in use, or the TLS files are none.

    ``users`` has the authorities of the certificates of clients; None: they are not asked for one.
    """
    options: dict[str, Any] = {"ssl_certfile": str(tls.certificate), "ssl_keyfile": str(tls.key)} if tls else {}
    if users is not None:
        if tls is None:
            raise SettingsError("certificates of users need TLS: set FALCON_TLS_CERTIFICATE and FALCON_TLS_KEY")
        options |= {"ssl_ca_certs": str(users), "ssl_cert_reqs": ssl.CERT_OPTIONAL}
    try:
        config = server_config(app, host, port, **options)
        config.load()
        listener = config.bind_socket()
    except (ssl.SSLError, OSError) as error:
        raise SettingsError(f"FALCON_TLS_CERTIFICATE, FALCON_TLS_KEY, FALCON_LOGINS: {error}") from error
    except SystemExit:  # uvicorn has said why
        raise SettingsError(
            f"the front cannot listen at {host}:{port}: stop what does, or choose another --port"
        ) from None
    uvicorn.Server(config).run(sockets=[listener])
