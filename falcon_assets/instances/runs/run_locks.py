"""Locks of a run at work: they show that it lives, and protect the instances that it computes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self, TypeVar

import sqlalchemy
from sqlalchemy import Connection, Engine, text

from falcon_assets.errors import FalconError
from falcon_assets.history.database import try_lock, try_locks, unlock
from falcon_assets.history.platform.reconnecting import patience
from falcon_assets.model.instant import format_instant

T = TypeVar("T")
_SHOWN_AS = "falcon run "
_CHECK_SECONDS = 2.0
_RETRY_SECONDS = 0.5
RETAKEN_WITHIN_SECONDS = 4 * (_CHECK_SECONDS + _RETRY_SECONDS)
"""After a restart of PostgreSQL every living run has its locks again within this time."""


def run_lock(run_id: str, workload: str, cluster: str) -> str:
    """Held while the run computes instances of the workload on the cluster."""
    return f"falcon run {run_id} {workload} {cluster}"


def instance_lock(workload: str, cluster: str, nominal: datetime) -> str:
    """Held from before the instance is computed until the result is recorded."""
    return f"falcon instance {workload} {cluster} {format_instant(nominal)}"


def place_lock(workload: str, cluster: str) -> str:
    """Held by a run whose instances write where those of other runs do, until all is recorded."""
    return f"falcon place {workload} {cluster}"


def session_of_run(run_id: str) -> str:
    """The name by which PostgreSQL lists the session with the locks of a run (``application_name``)."""
    return f"{_SHOWN_AS}{run_id}"


def silent_runs(connection: Connection, longer_than: timedelta) -> dict[str, timedelta]:
    """Run -> for how long its worker has not asked its session, although the session is there.

    A worker that lives asks every two seconds. One that was stopped, or whose machine hangs, keeps its locks and is
    silent. Sessions of other PostgreSQL users are not seen.
    """
    statement = text(
        "SELECT application_name, clock_timestamp() - state_change FROM pg_stat_activity "
        "WHERE datname = current_database() AND starts_with(application_name, :shown) "
        "AND clock_timestamp() - state_change > :longest"
    )
    rows = connection.execute(statement, {"shown": _SHOWN_AS, "longest": longer_than})
    return {name.removeprefix(_SHOWN_AS): silent for name, silent in rows}


@contextmanager
def all_taken(engine: Engine, names: Sequence[str]) -> Iterator[bool]:
    """Holds all the locks, and yields True; yields False where another process has one of them."""
    with engine.connect() as connection:
        taken = list[str]()
        try:
            while len(taken) < len(names) and try_lock(connection, names[len(taken)]):
                taken.append(names[len(taken)])
            connection.commit()
            yield len(taken) == len(names)
        finally:
            unlock(connection, *taken)


class LockWaitError(FalconError):
    """A lock is not waited for any longer: the run is interrupted, or the database stays away."""


class RunLocks:
    """Advisory locks in a database session of their own, until the context ends or the process dies in any way.

    Where the session breaks, when PostgreSQL restarts for example, a new one takes all its locks in the background.
    Safe from several threads. ``sessions`` above one: the locks were free for a moment.
    """

    def __init__(self, url: str, name: str, shown_as: str) -> None:
        """``shown_as`` is the name of the session in PostgreSQL."""
        self._engine = sqlalchemy.create_engine(
            url,
            isolation_level="AUTOCOMMIT",
            poolclass=sqlalchemy.NullPool,
            connect_args={"application_name": shown_as[:63], "connect_timeout": 5},
        )
        self._name = name
        self._names: set[str] = set()
        self._lost: set[str] = set()
        self._session: Connection | None = None
        self._mutex = threading.RLock()
        self._asked = 0.0
        self._over = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name=shown_as, daemon=True)
        self.sessions = 0

    def __enter__(self) -> Self:
        """Waits while another process of the same run still has the lock; raises OperationalError."""
        self._session = self._engine.connect()
        self.sessions = 1
        self._keeper.start()
        try:
            self.wait_for(self._name)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop_waiting()
        self._keeper.join()
        with self._mutex:
            self._drop()

    def stop_waiting(self) -> None:
        """Ends all waiting with LockWaitError; locks that are held stay until the end."""
        self._over.set()

    def take(self, name: str) -> bool:
        """Takes a lock if it is free; raises LockWaitError where the run is interrupted, or the database stays away."""
        return bool(self.take_free([name]))

    def take_free(self, names: Collection[str]) -> set[str]:
        """Takes those that are free, and returns those that it has; raises as :meth:`take`."""

        def take(session: Connection) -> set[str]:
            had = self._names.intersection(names) - self._lost
            taken = try_locks(session, [name for name in names if name not in had])
            self._names |= taken
            self._lost -= taken
            return had | taken

        return self._ask(take)

    def were_kept(self) -> bool:
        """Whether no other process can have had the locks since they were taken; raises and waits as :meth:`take`."""
        came = time.monotonic()

        def ask(session: Connection) -> None:
            if self._asked < came:  # else another thread has asked since
                began = time.monotonic()
                session.exec_driver_sql("SELECT 1")
                self._asked = began

        self._ask(ask)
        return self.sessions == 1

    def release(self, *names: str) -> None:
        """Gives back those that it has."""
        with self._mutex:
            held = self._names.intersection(names)
            self._names -= held
            self._lost -= held
            if self._session is not None and held:
                try:
                    unlock(self._session, *held)
                except sqlalchemy.exc.DBAPIError:
                    self._drop()  # and the lock is free with it

    def wait_for(self, name: str) -> None:
        """Waits until the lock is free; raises as :meth:`take`."""
        # Asked for again and again: a statement that waits would block the session, and with it every other thread.
        while not self.take(name):
            self._over.wait(_RETRY_SECONDS)

    def _ask(self, question: Callable[[Connection], T]) -> T:
        give_up = time.monotonic() + patience()
        while not self._over.is_set():
            if time.monotonic() > give_up:
                raise LockWaitError(f"the database was away for {patience():.0f} s")
            with self._mutex:
                if self._session is not None:
                    try:
                        return question(self._session)
                    except sqlalchemy.exc.DBAPIError:
                        self._drop()
            self._over.wait(_RETRY_SECONDS)
        raise LockWaitError("the run is interrupted")

    def _keep(self) -> None:
        while not self._over.wait(_CHECK_SECONDS if self._session is not None and not self._lost else _RETRY_SECONDS):
            with self._mutex, suppress(sqlalchemy.exc.DBAPIError):
                self._check()

    def _check(self) -> None:
        try:
            if self._session is None:
                self._session = self._engine.connect()
                self.sessions += 1
                self._lost = set(self._names)
            elif not self._lost:
                self._session.exec_driver_sql("SELECT 1")
            # The server may take a moment to notice that the session before is gone.
            self._lost = {name for name in self._lost if not try_lock(self._session, name)}
        except sqlalchemy.exc.DBAPIError:
            self._drop()
            raise

    def _drop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            with suppress(sqlalchemy.exc.DBAPIError):
                session.invalidate()
                session.close()
