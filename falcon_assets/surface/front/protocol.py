"""How uvicorn reads requests: their headers come soon and are small, and a client's certificate is told."""

from __future__ import annotations

import asyncio
import ssl

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.auto import AutoWebSocketsProtocol

HEADER_SECONDS = 15.0
MOST_HEADER_BYTES = 64 * 1024
_TOO_LONG = f"The headers of the request are longer than {MOST_HEADER_BYTES} bytes."


class TellsCertificate(asyncio.Protocol):
    """Mixed into a protocol of uvicorn: its application is told the client's certificate, by ASGI's TLS extension."""

    app: ASGIApp

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        super().connection_made(transport)
        if (secured := transport.get_extra_info("ssl_object")) is not None:
            self.app = _told(self.app, _certificates(secured))


class FrontWebsocket(TellsCertificate, AutoWebSocketsProtocol):  # type: ignore[misc, valid-type]  # chosen at run time
    """As uvicorn's."""


class FrontProtocol(TellsCertificate, HttpToolsProtocol):
    """Ends connections that do not say what they want: uvicorn itself would wait for ever."""

    _too_late: asyncio.TimerHandle | None = None
    _waited_for = 0
    """Bytes that came while the headers were not complete."""
    _header_bytes = 0
    """Of names and values in the headers of this request."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._too_late is not None:
            self._waited_for += len(data)
            if self._waited_for > MOST_HEADER_BYTES + len(data):
                self.send_400_response(_TOO_LONG)
                return
        super().data_received(data)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._header_bytes = 0
        if self._too_late is None:  # a further request on this connection
            self._wait()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_bytes += len(name) + len(value)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Refuses headers that came at once.

        Raises:
            ValueError: they are too long. uvicorn answers with 400 and closes the connection.
        """
        if self._header_bytes + len(self.url) > MOST_HEADER_BYTES:
            raise ValueError(_TOO_LONG)
        self._stop_waiting()
        super().on_headers_complete()

    def _wait(self) -> None:
        self._waited_for = 0
        self._too_late = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._too_late is not None:
            self._too_late.cancel()
            self._too_late = None


def _told(app: ASGIApp, chain: list[str]) -> ASGIApp:
    async def telling(scope: Scope, receive: Receive, send: Send) -> None:
        extensions = {**scope.get("extensions", {}), "tls": {"client_cert_chain": chain}}
        await app({**scope, "extensions": extensions}, receive, send)

    return telling


def _certificates(secured: ssl.SSLObject) -> list[str]:
    """The client's, verified by the TLS of this connection, as PEM (source: ASGI's TLS extension)."""
    certificate = secured.getpeercert(binary_form=True)
    return [] if certificate is None else [ssl.DER_cert_to_PEM_cert(certificate)]
