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


@dataclass
class Collected:
    """What a system that collects lineage was sent, and how it answers.

    Attributes:
        requests: Path, authorization and event of each.
        answer: The status of its answers.
        takes: Of so many requests more; then it answers with 429; None: of all.
        refuses: Run ids of events that it answers with 422.
        released: While it is not set, nothing is answered.
        port: Where it listens.
    """

    requests: list[tuple[str, str | None, dict[str, Any]]] = field(default_factory=list)
    answer: int = 201
    takes: int | None = None
    refuses: set[str] = field(default_factory=set)
    released: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    @property
    def events(self) -> list[dict[str, Any]]:
        return [event for _, _, event in self.requests]


@contextmanager
def lineage_collector() -> Iterator[Collected]:
    """A receiver of OpenLineage's events by HTTP."""
    collected = Collected()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            collected.released.wait()
            status = 422 if event["run"]["runId"] in collected.refuses else collected.answer
            if collected.takes is not None:
                collected.takes -= 1
                status = 429 if collected.takes < 0 else status
            if status == 201:
                collected.requests.append((self.path, self.headers["Authorization"], event))
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/login")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/login" else collected.answer)
            if collected.answer == 302:
                self.send_header("Location", "/login")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    collected.released.set()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    with _serving(server, collected):
        yield collected


@dataclass
class Subscribed:
    """What a service that takes CloudEvents by HTTP was sent, and how it answers.

    Attributes:
        requests: Headers and body of each.
        answers: By which it answers next, and then with 202.
        released: While it is not set, nothing is answered.
        port: Where it listens.
    """

    requests: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    @property
    def bodies(self) -> list[bytes]:
        return [body for _, body in self.requests]

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.bodies]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/events"


@contextmanager
def subscriber() -> Iterator[Subscribed]:
    """A service that takes CloudEvents by HTTP; it keeps those that it accepts."""
    subscribed = Subscribed()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            subscribed.released.wait()
            status = subscribed.answers.pop(0) if subscribed.answers else 202
            if status == 202:
                subscribed.requests.append((dict(self.headers.items()), body))
            self._say(status)

        def do_OPTIONS(self) -> None:
            self._say(subscribed.answers.pop(0) if subscribed.answers else 405)

        def _say(self, status: int) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    subscribed.released.set()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    with _serving(server, subscribed):
        yield subscribed


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
def _serving(server: socketserver.TCPServer, received: Received | Collected | Subscribed) -> Iterator[None]:
    received.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
