"""A pooler as pgbouncer is with `pool_mode = transaction`: clients share connections, one transaction each."""

from __future__ import annotations

import queue
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import sqlalchemy

_SSL, _NO = 80877103, b"N"
_READY, _IDLE, _KEY, _END = b"Z", b"I", b"K", b"X"
_FAKE_KEY = struct.pack("!cIII", _KEY, 12, 4711, 4711)
"""A pooler has process ids of its own."""


def _exactly(stream: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = stream.recv(size - len(found))
        if not part:
            raise ConnectionError
        found += part
    return found


def _message(stream: socket.socket) -> tuple[bytes, bytes]:
    """The kind of a message, and all of it."""
    head = _exactly(stream, 5)
    return head[:1], head + _exactly(stream, struct.unpack("!I", head[1:])[0] - 4)


def _startup(stream: socket.socket) -> bytes:
    while True:
        head = _exactly(stream, 8)
        size, code = struct.unpack("!II", head)
        if code != _SSL:
            return head + _exactly(stream, size - 8)
        stream.sendall(_NO)


def _until_ready(server: socket.socket) -> tuple[bytes, bool]:
    """What a server says until it is ready, and whether it is in no transaction then."""
    said = b""
    while True:
        kind, message = _message(server)
        said += _FAKE_KEY if kind == _KEY else message
        if kind == _READY:
            return said, message[5:] == _IDLE


def _serve(client: socket.socket, socket_file: str, pool: queue.LifoQueue[tuple[socket.socket, bytes]]) -> None:
    with client, suppress(ConnectionError):
        startup = _startup(client)
        if pool.empty():
            server = socket.socket(socket.AF_UNIX)
            server.connect(socket_file)
            server.sendall(startup)
            pool.put((server, _until_ready(server)[0]))
        held = pool.get()
        client.sendall(held[1])  # what PostgreSQL said to who connected first
        pool.put(held)
        while True:
            kind, message = _message(client)
            if kind == _END:
                return
            server, greeting = pool.get()
            is_over = False
            while not is_over:
                server.sendall(message)
                said, is_over = _until_ready(server)
                client.sendall(said)
                if not is_over:
                    _, message = _message(client)
            pool.put((server, greeting))


@contextmanager
def transaction_pooler(url: str) -> Iterator[str]:
    """The URL of a pooler in front of an embedded server, whose URL is given."""
    told = sqlalchemy.make_url(url)
    socket_file = str(Path(str(told.query["host"]), ".s.PGSQL.5432"))
    pool: queue.LifoQueue[tuple[socket.socket, bytes]] = queue.LifoQueue()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listening.accept()
                    threading.Thread(target=_serve, args=(client, socket_file, pool), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        pooled = told.set(host="127.0.0.1", port=listening.getsockname()[1], query={})
        yield pooled.render_as_string(hide_password=False)
        listening.shutdown(socket.SHUT_RDWR)
    while not pool.empty():
        pool.get()[0].close()
