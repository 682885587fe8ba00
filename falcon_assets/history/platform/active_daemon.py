"""Of several daemons with one database one is active; where it loses that, nothing that it still does has an effect.

The active one has a lock in a session of its own, which it asks every two seconds: PostgreSQL itself ends a session
that is silent for longer, whatever happened to its process or machine, and the lock is free. Who gets it begins a new
term in the database, and ends what sessions of earlier terms there are, before it does anything. The sessions of a
daemon's work carry its term, and each asks when it begins whether that is still the present one. So all that a former
daemon has done was done before its successor began, and a former one that goes on, because it was stopped or cut off
for a while, can neither record nor start anything any more: it ends when it notices. One whose tables a newer
version has migrated ends, too, for a daemon of that version.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

import sqlalchemy
from psycopg2.errors import ReadOnlySqlTransaction
from sqlalchemy import Connection, Engine, event, func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError

from falcon_assets.errors import SettingsError
from falcon_assets.history.database import holders, require_known_revision, try_lock, upgrade
from falcon_assets.history.platform.reconnecting import wait_in_python
from falcon_assets.history.tables import DAEMON, SCHEMA

SILENT_SECONDS = 10
"""After so long PostgreSQL ends the session of a daemon that has not asked it anything."""
REPLACED = 3
"""Exit code of a daemon that another one has replaced."""
_ASK_SECONDS = 2.0
_RETRY_SECONDS = 0.5
_ENDS_WITHIN_SECONDS = 0.1
_LOCK = "falcon daemon"
_SHOWN_AS, _WORK_SHOWN_AS = "falcon daemon ", "falcon daemon's work, term "
_LONGEST_NAME = 63
_NOTICES: Mapping[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""So that a connection to a server that is gone fails, instead of being waited for."""


@dataclass(frozen=True)
class Daemon:
    """A daemon that is active or waits; ``since`` by the database's clock."""

    host: str
    process: int
    since: datetime
    is_active: bool

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}"


def candidates(connection: Connection) -> list[Daemon]:
    """The active one, if there is one, and then those that wait; those of other PostgreSQL users are not seen."""
    holder = holders(connection, [_LOCK]).get(_LOCK)
    sessions = connection.execute(
        text(
            "SELECT pid, application_name, backend_start FROM pg_stat_activity WHERE datname = current_database() "
            "AND starts_with(application_name, :shown) ORDER BY backend_start"
        ),
        {"shown": _SHOWN_AS},
    ).all()
    has_table = connection.execute(select(func.to_regclass(f"{SCHEMA}.{DAEMON.name}"))).scalar_one() is not None
    began = connection.execute(select(DAEMON.c.since)).scalar_one_or_none() if has_table and holder else None
    found = []
    for pid, name, start in sessions:
        process, _, host = name.removeprefix(_SHOWN_AS).partition(" ")
        active = pid == holder
        found.append(Daemon(host, int(process), (began if active else None) or start, active))
    return sorted(found, key=lambda one: not one.is_active)


class ActiveDaemon:
    """This process as the active daemon, until it ends or is replaced."""

    def __init__(self, url: str, say: Callable[[str], object]) -> None:
        name = f"{_SHOWN_AS}{os.getpid()} {socket.gethostname()}"
        arguments = {"application_name": name.encode()[:_LONGEST_NAME].decode(errors="ignore"), **_NOTICES}
        self._url, self._say = url, say
        self._engine = sqlalchemy.create_engine(
            url, isolation_level="AUTOCOMMIT", poolclass=sqlalchemy.NullPool, connect_args=arguments
        )
        self._session: Connection | None = None
        self.term = 0
        self._is_outdated = False
        wait_in_python()

    def begin(self) -> None:
        """Waits until no other daemon is active, and makes this one it; it ends the process where it is replaced.

        Raises:
            SettingsError: the tables of the ledger are of a newer version.
        """
        told = ""
        while not self.term:
            try:
                told = self._try(told)
            except DBAPIError as error:
                self._drop()
                told = self._tell(_why_not(error), told)
            if not self.term:
                time.sleep(_RETRY_SECONDS)
        _acting.append(self)
        threading.Thread(target=self._keep, name="keeps the lock of the daemon", daemon=True).start()
        self._say(f"this daemon is active now (term {self.term})")

    def _try(self, told: str) -> str:
        if self._session is None:
            upgrade(sqlalchemy.create_engine(self._url, poolclass=sqlalchemy.NullPool))
            self._session = self._connect()
        session = self._session
        if not try_lock(session, _LOCK):
            active = next((one for one in candidates(session) if one.is_active), None)
            return self._tell(f"waits: {active or 'another one'} is the active daemon", told)
        term = _begin_term(session)
        while names := _end_others(session, term):
            told = self._tell(f"waits for the end of what an earlier daemon does: {', '.join(names)}", told)
            time.sleep(_ENDS_WITHIN_SECONDS)
        self.term = term
        return told

    def _connect(self) -> Connection:
        session = self._engine.connect()
        session.exec_driver_sql(f"SET idle_session_timeout = '{SILENT_SECONDS}s'")
        return session

    def _tell(self, what: str, told: str) -> str:
        if what != told:
            self._say(what)
        return what

    def _keep(self) -> None:
        while True:
            time.sleep(_ASK_SECONDS if self._session is not None else _RETRY_SECONDS)
            with suppress(DBAPIError):
                self._ask()

    def _ask(self) -> None:
        """Takes the lock again where the session was lost, as when PostgreSQL is restarted, and nobody had it since."""
        try:
            if self._session is not None:
                self._require_known_tables(self._session)
                return
            session = self._connect()
            taken = try_lock(session, _LOCK)
            self.require_term(session.connection.cursor())
            if taken:
                self._session = session
            else:  # of its own session before, which PostgreSQL has not ended yet, or of its successor
                session.close()
        except DBAPIError:
            self._drop()
            raise

    def _require_known_tables(self, session: Connection) -> None:
        """Ends this process in order, once, where a newer version has migrated the tables: it is to be active."""
        try:
            require_known_revision(session)
        except SettingsError as error:
            if not self._is_outdated:
                self._say(f"this daemon ends: {error}")
                os.kill(os.getpid(), signal.SIGTERM)
            self._is_outdated = True

    def require_term(self, cursor: Any) -> None:
        """Ends this process if another daemon has become the active one."""
        cursor.execute(f"SELECT term, host, process FROM {SCHEMA}.{DAEMON.name}")  # noqa: S608 - constants
        term, host, process = cursor.fetchone() or (None, "", "")
        if term != self.term:
            _leave(f"process {process} on {host} has become the active daemon: this one ends")

    def _drop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            with suppress(DBAPIError):
                session.invalidate()
                session.close()


_acting: list[ActiveDaemon] = []
"""The daemon that this process is, if it is the active one."""


def work_arguments() -> dict[str, Any]:
    """Arguments of the sessions that Dagster's daemon works with in this process: they show their term."""
    return {"application_name": f"{_WORK_SHOWN_AS}{_acting[0].term}"} if _acting else {}


def of_active_daemon(engine: Engine) -> Engine:
    """An engine with :func:`work_arguments`: a new connection of a replaced daemon ends the process."""
    if _acting:

        @event.listens_for(engine, "connect")
        def require_term(connection: Any, _record: Any) -> None:
            with connection.cursor() as cursor:
                _acting[0].require_term(cursor)

    return engine


def _why_not(error: DBAPIError) -> str:
    if isinstance(error.orig, ReadOnlySqlTransaction):
        return "waits: the database can only be read, as a standby"
    return f"the database does not answer: {str(error.orig).strip().partition(chr(10))[0]}"


def _begin_term(session: Connection) -> int:
    values = {"host": socket.gethostname(), "process": os.getpid(), "since": func.now()}
    first = insert(DAEMON).values(only=True, term=1, **values)
    begun = first.on_conflict_do_update(index_elements=["only"], set_={"term": DAEMON.c.term + 1, **values})
    return int(session.execute(begun.returning(DAEMON.c.term)).scalar_one())


def _end_others(session: Connection, term: int) -> list[str]:
    """Has PostgreSQL end the sessions of other terms; the names of those that are still there."""
    statement = text(
        "SELECT application_name, pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
        "AND starts_with(application_name, :shown) AND application_name <> :ours"
    )
    return [
        name for name, _ in session.execute(statement, {"shown": _WORK_SHOWN_AS, "ours": f"{_WORK_SHOWN_AS}{term}"})
    ]


def _leave(why: str) -> NoReturn:
    """As if killed: whatever it would do to end in order is not its to do any more. Its runs end with it."""
    with suppress(OSError, ValueError):
        sys.stdout.write(f"{why}\n")
        sys.stdout.flush()
    os._exit(REPLACED)
