"""A real HTTP service on loopback that takes batches of rows, each of them once by its key."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, str]]


@dataclass
class HttpService:
    """What it was sent.

    Attributes:
        batches: Rows by the key of their batch: what the service keeps.
        sent: How often each key came.
        answers: What it answers to the next requests, instead of taking them; afterwards it takes all.
        takes: Asked about each batch: the status that it answers instead; None: it takes it.
    """

    batches: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    sent: Counter[str] = field(default_factory=Counter)
    headers: list[dict[str, str]] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    takes: Callable[[list[dict[str, Any]]], int | None] = lambda rows: None
    port: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}/api"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All that it has, each batch once."""
        return [row for rows in self.batches.values() for row in rows]

    def take(self, path: str, headers: dict[str, str], body: bytes) -> Answer:
        assert path == "/api/v1/orders", path
        rows, key = json.loads(body), headers["Idempotency-Key"]
        with self.lock:
            self.sent[key] += 1
            self.headers.append(headers)
            if self.answers:
                return self.answers.pop(0)
            if (status := self.takes(rows)) is not None:
                return status, {}
            assert self.batches.setdefault(key, rows) == rows, "another batch has this key"
        return 201, {}


@contextmanager
def http_service() -> Iterator[HttpService]:
    service = HttpService()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, headers = service.take(self.path, dict(self.headers), body)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": "0"}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Prints nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
