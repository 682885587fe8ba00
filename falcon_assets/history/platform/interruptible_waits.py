"""Waiting for PostgreSQL in Python instead of in libpq, so that signals are handled and a dead server is noticed."""

from __future__ import annotations

import select
import time
from typing import Any

import psycopg2
from psycopg2 import OperationalError
from psycopg2.extensions import POLL_OK, POLL_READ, POLL_WRITE, STATUS_BEGIN, STATUS_READY, set_wait_callback

CONNECT_SECONDS = 10.0
_DOUBT_SECONDS = 10.0
"""After so long without an answer, and again each time, a new connection checks whether the server is alive."""
_POLL_MILLISECONDS = 500
"""Signals end a system call at once; the interval is for other interruptions."""


def wait_in_python() -> None:
    """Applies to all connections of this process; idempotent."""
    set_wait_callback(_wait)


def _wait(connection: Any) -> None:
    """Waits, however long a statement takes; raises OperationalError if the server accepts no connections any more."""
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
