"""Receivers of notifications on the loopback: an HTTP server and an SMTP server, whose answers tests decide."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.header import decode_header, make_header
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Received:
    """What came, and what is answered.

    Attributes:
        messages: Title, text and key of each message.
        refuses: Whether nothing is taken.
        port: Where it listens.
    """

    messages: list[tuple[str, str, str]] = field(default_factory=list)
    refuses: bool = False
    port: int = 0

    @property
    def titles(self) -> list[str]:
        return [title for title, _, _ in self.messages]


@contextmanager
def web_hook() -> Iterator[Received]:
    """A receiver of ``json://``."""
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if not received.refuses:
                received.messages.append((body["title"], body["message"], self.headers["Idempotency-Key"]))
            self.send_response(503 if received.refuses else 200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with _serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler), received):
        yield received


@contextmanager
def mail_box() -> Iterator[Received]:
    """A receiver of ``mailto://``: as much of SMTP as smtplib speaks."""
    received = Received()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say(220)
            while line := self.rfile.readline():
                word = line.split()[0].upper() if line.split() else b""
                if word == b"DATA":
                    self._say(354)
                    self._take()
                elif word == b"QUIT":
                    self._say(221)
                    return
                else:
                    self._say(550 if word == b"RCPT" and received.refuses else 250)

        def _take(self) -> None:
            lines = []
            while (line := self.rfile.readline()) not in (b".\r\n", b""):
                lines.append(line.removeprefix(b"."))
            mail = message_from_bytes(b"".join(lines))
            text = next(part for part in mail.walk() if part.get_content_maintype() == "text")
            title = str(make_header(decode_header(mail["Subject"])))
            received.messages.append((title, text.get_payload(decode=True).decode(), mail["Idempotency-Key"]))
            self._say(250)

        def _say(self, code: int) -> None:
            self.wfile.write(f"{code} so be it\r\n".encode())

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with _serving(Server(("127.0.0.1", 0), Handler), received):
        yield received


@contextmanager
def _serving(server: socketserver.TCPServer, received: Received) -> Iterator[None]:
    received.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
