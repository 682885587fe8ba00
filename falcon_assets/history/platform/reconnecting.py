"""Connections that are waited for while PostgreSQL is away, instead of failing whoever asks just then."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy
from psycopg2 import OperationalError
from sqlalchemy import Engine, event

from falcon_assets.history.dagster_internals.retries import NotTriedAgain
from falcon_assets.history.platform.interruptible_waits import wait_in_python
from falcon_assets.history.platform.postgres import is_embedded, revive_embedded

_PATIENCE_SECONDS = 300.0
"""For each question: what a run has done would be done once more, and a daemon would ask and fail without end."""
_FOREGROUND_SECONDS = 30.0
"""For all questions together, where somebody waits for the process."""
_POLL_SECONDS = 0.2
_ANSWER_SECONDS = 30.0
"""So long the last answer stands there for a database that is away for good: a silent database takes ten to give it."""
_SAID_AFTER_SECONDS = 3.0
"""A restart is no news."""
_PASSES = re.compile(
    "the database system is (?:starting up|shutting down|not yet accepting|not accepting|in recovery mode)"
)
"""What a server says that crashed, or was told to restart; what a standby says that answers nobody is longer."""
_log = logging.getLogger(__name__)


@dataclass
class _Absence:
    """Since when a database has been away, and what the last attempt to connect brought, and when."""

    since: float
    last: float
    reason: str
    is_said: bool = False


@dataclass
class _Process:
    """Whether somebody waits for this process."""

    is_foreground: bool = False


_process = _Process()
_absences: dict[str, _Absence] = {}
"""By database: whoever noticed first."""


@contextmanager
def in_the_foreground() -> Iterator[None]:
    """Within the block nothing waits for a database that has been away for half a minute."""
    before, _process.is_foreground = _process.is_foreground, True
    try:
        yield
    finally:
        _process.is_foreground = before


def wait_out_restarts(engine: Engine, *, is_known: bool = True) -> Engine:
    """Lets the engine try to connect for five minutes; the log says when the database is away, and when it is back.

    With ``pool_pre_ping`` only statements that are under way at that very moment fail. All waiting can be interrupted.

    Args:
        engine: Has connected before, so its URL is right.
        is_known: Where it is not, this engine has not: until it has, only a server is waited for that says of itself
            that it is starting or stopping, or that is the embedded one, which was there a moment ago.
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
                time.sleep(_POLL_SECONDS)  # nothing tells when the server is back
            else:
                known_here[0] = True
                _back(name)
                return connection

    return engine


def wait_until_back(url: str) -> None:
    """Returns when the database answers, for a process whose parent had a connection to it.

    Raises:
        sqlalchemy.exc.InterfaceError: it stays away.
    """
    wait_out_restarts(sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)).connect().close()


def _noticed(name: str, reason: str) -> _Absence:
    now = time.monotonic()
    absence = _absences.setdefault(name, _Absence(now, now, ""))
    absence.last, absence.reason = now, reason
    if not absence.is_said and now - absence.since > _SAID_AFTER_SECONDS:
        absence.is_said = True
        _log.warning("the database %s is away, and is waited for: %s", name, reason.strip().partition("\n")[0])
    return absence


def _back(name: str) -> None:
    absence = _absences.pop(name, None)
    if absence and absence.is_said:
        _log.warning("the database %s is back after %.0f s", name, time.monotonic() - absence.since)


def _is_given_up(absence: _Absence, asked: float) -> bool:
    if _process.is_foreground:
        return absence.last - absence.since > _FOREGROUND_SECONDS
    return absence.last - asked > _PATIENCE_SECONDS
