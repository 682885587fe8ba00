"""Connections that wait while PostgreSQL is unreachable, instead of failing the caller."""

from __future__ import annotations

import logging
import re
import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg2
import sqlalchemy
from psycopg2 import OperationalError
from psycopg2.extensions import (
    POLL_OK,
    POLL_READ,
    POLL_WRITE,
    STATUS_BEGIN,
    STATUS_READY,
    get_wait_callback,
    set_wait_callback,
)
from sqlalchemy import Engine, event

from falcon_assets.history.dagster_internals.retries import NotTriedAgain
from falcon_assets.history.platform.postgres import is_embedded, revive_embedded

CONNECT_SECONDS = 10.0
_DOUBT_SECONDS = 10.0
"""After so long without an answer, and again each time, a new connection checks whether the server is alive."""
_POLL_MILLISECONDS = 500
"""Signals end a system call at once; the interval is for other interruptions."""


def wait_in_python() -> None:
    """Applies to all connections of this process; idempotent."""
    set_wait_callback(_wait)


@contextmanager
def waiting_in_c() -> Iterator[None]:
    """Within it psycopg2 can COPY on new connections; no connection of this process notices a server that vanishes."""
    before = get_wait_callback()
    set_wait_callback(None)
    try:
        yield
    finally:
        set_wait_callback(before)


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


_PATIENCE_SECONDS = 300.0
"""Per query: failing runs would repeat their work, and a daemon would ask and fail without end."""
_FOREGROUND_SECONDS = 30.0
"""For all queries together, where a user waits for the process."""
_POLL_SECONDS = 0.2
_ANSWER_SECONDS = 30.0
"""How long the last error is repeated for a database that is given up: a silent one takes ten seconds to fail."""
_SAID_AFTER_SECONDS = 3.0
_PASSES = re.compile(
    "the database system is (?:starting up|shutting down|not yet accepting|not accepting|in recovery mode)"
)
"""Messages of a server that recovers or restarts; a standby that accepts no connections has a longer one."""
_log = logging.getLogger(__name__)


@dataclass
class _Absence:
    since: float
    last: float
    reason: str
    is_said: bool = False


@dataclass
class _Process:
    is_foreground: bool = False


_process = _Process()
_absences: dict[str, _Absence] = {}


@contextmanager
def in_the_foreground() -> Iterator[None]:
    """Within the block, a database that has been unreachable for half a minute is given up."""
    before, _process.is_foreground = _process.is_foreground, True
    try:
        yield
    finally:
        _process.is_foreground = before


def wait_out_restarts(engine: Engine, *, is_known: bool = True) -> Engine:
    """Lets the engine retry connecting for five minutes; logs when the database is away, and when it is back.

    With ``pool_pre_ping`` only statements in progress at that moment fail. All waits can be interrupted.

    ``is_known``: the engine has connected before, so its URL is right. Otherwise it waits only for a server that
    reports that it is starting or stopping, or for the embedded one, which ran a moment ago.
    """
    wait_in_python()
    name = engine.url.render_as_string(hide_password=True)
    known_here = [is_known]

    @event.listens_for(engine, "do_connect")
    def connect(dialect: Any, _record: Any, args: Any, parameters: Any) -> Any:
        began = time.monotonic()
        known = _absences.get(name)
        if known and _is_given_up(known, began) and began - known.last < _ANSWER_SECONDS:
            raise NotTriedAgain(known.reason)  # to end in order takes many questions
        while True:
            try:
                connection = dialect.connect(*args, **parameters)
            except OperationalError as error:
                if not (known_here[0] or is_embedded(engine.url) or _PASSES.search(str(error))):
                    raise
                absence = _noticed(name, str(error))
                if _is_given_up(absence, began):
                    raise NotTriedAgain(absence.reason) from error
                revive_embedded(engine.url)
                time.sleep(_POLL_SECONDS)  # no event shows when the server is back
            else:
                known_here[0] = True
                _back(name)
                return connection

    return engine


def wait_until_back(url: str) -> None:
    """Returns when the database answers, or raises InterfaceError; for a process whose parent had a connection."""
    wait_out_restarts(sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)).connect().close()


def _noticed(name: str, reason: str) -> _Absence:
    now = time.monotonic()
    absence = _absences.setdefault(name, _Absence(now, now, ""))
    absence.last, absence.reason = now, reason
    if not absence.is_said and now - absence.since > _SAID_AFTER_SECONDS:
        absence.is_said = True
        _log.warning("the database %s is unreachable, waiting for it: %s", name, reason.strip().partition("\n")[0])
    return absence


def _back(name: str) -> None:
    absence = _absences.pop(name, None)
    if absence and absence.is_said:
        _log.warning("the database %s is back after %.0f s", name, time.monotonic() - absence.since)


def patience() -> float:
    """For how many seconds this process waits for a database that is away."""
    return _FOREGROUND_SECONDS if _process.is_foreground else _PATIENCE_SECONDS


def _is_given_up(absence: _Absence, asked: float) -> bool:
    return absence.last - (absence.since if _process.is_foreground else asked) > patience()
