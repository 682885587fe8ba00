"""Waiting for PostgreSQL in Python instead of in libpq: so that signals are heard, and a dead server is noticed."""

from __future__ import annotations

import select
import time
from typing import Any

import psycopg2
from psycopg2 import OperationalError
from psycopg2.extensions import POLL_OK, POLL_READ, POLL_WRITE, STATUS_BEGIN, STATUS_READY, set_wait_callback

CONNECT_SECONDS = 10.0
"""How long a server may take to let somebody in."""
_DOUBT_SECONDS = 10.0
"""So long after a question without an answer it is asked whether the server is there at all, and again each time."""
_POLL_MILLISECONDS = 500
"""Signals end a system call at once; this is for whoever is interrupted in other ways."""


def wait_in_python() -> None:
    """Lets all connections of this process wait so; calling it twice changes nothing."""
    set_wait_callback(_wait)


def _wait(connection: Any) -> None:
    """Waits until the connection is ready.

    Raises:
        OperationalError: the server lets nobody in any more. A statement may take its time, and wait for locks.
    """
    connecting = connection.status not in (STATUS_READY, STATUS_BEGIN)
    doubt_at = time.monotonic() + (CONNECT_SECONDS if connecting else _DOUBT_SECONDS)
    while (state := connection.poll()) != POLL_OK:
        poller = select.poll()
        poller.register(connection.fileno(), {POLL_READ: select.POLLIN, POLL_WRITE: select.POLLOUT}[state])
        while not poller.poll(_POLL_MILLISECONDS):
            if time.monotonic() > doubt_at:
                if connecting:
                    raise OperationalError(f"it did not answer within {CONNECT_SECONDS:.0f} seconds")
                _require_a_server(connection)
                doubt_at = time.monotonic() + _DOUBT_SECONDS


def _require_a_server(connection: Any) -> None:
    info = connection.info
    known = {**info.dsn_parameters, "password": info.password}
    psycopg2.connect(**known).close()
