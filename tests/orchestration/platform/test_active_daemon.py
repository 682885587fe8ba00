"""Of several daemons one acts; one that was killed, stopped or cut off is replaced, and nothing is done twice."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg2
import pytest
import sqlalchemy

from falcon_assets.history.platform.active_daemon import REPLACED, candidates
from tests.orchestration.platform.acting_daemons import SILENT_SECONDS, Acting
from tests.waiting import wait_until

PATIENCE = 300.0
"""In seconds, on a machine that is very busy; on a quiet one what is waited for takes less than one."""


class Rivals:
    def __init__(self, url: str, log: Path) -> None:
        self.engine = sqlalchemy.create_engine(url)
        self._url, self._log = url, log
        self.all: list[Acting] = []

    def start(self) -> Acting:
        self.all.append(Acting.start(self._url, self._log))
        return self.all[-1]

    def rows(self, query: str) -> list[tuple[int, ...]]:
        _, how = self.engine.dialect.create_connect_args(self.engine.url)
        with psycopg2.connect(**how) as connection, connection.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchall()

    def active(self) -> Acting:
        """The one that counts, once it has counted on from now."""
        (last,) = self.rows("SELECT coalesce(max(number), 0) FROM counted")[0]
        later = f"SELECT process FROM counted WHERE number > {last + 3}"
        ((process,), *_) = wait_until(lambda: self.rows(later), PATIENCE, self._log.read_text)
        return next(one for one in self.all if one.pid == process)

    def waits(self, one: Acting) -> None:
        wait_until(lambda: any(line.startswith("waits: process ") for line in one.said), PATIENCE, self._log.read_text)

    def end(self) -> None:
        for one in self.all:
            if one.process.is_alive():
                os.kill(one.pid, signal.SIGKILL)
            one.process.join()


@pytest.fixture
def rivals(database: str, tmp_path: Path) -> Iterator[Rivals]:
    found = Rivals(database, tmp_path / "log")
    with found.engine.begin() as connection:
        connection.execute(sqlalchemy.text("DROP TABLE IF EXISTS counted"))
        connection.execute(sqlalchemy.text("CREATE TABLE counted (number bigint, process int)"))
    yield found
    found.end()
    numbers = [number for (number,) in found.rows("SELECT number FROM counted ORDER BY number")]
    assert numbers == list(range(1, len(numbers) + 1)), "each number once"


def took(rivals: Rivals, gone: Acting, do: Callable[[int], None]) -> float:
    """The seconds until another one acts."""
    began = time.monotonic()
    do(gone.pid)
    while rivals.active() is gone:
        pass
    return time.monotonic() - began


def test_one_that_is_killed_is_replaced_at_once(rivals: Rivals) -> None:
    one, other = rivals.start(), rivals.start()
    active = rivals.active()
    waiting = other if active is one else one
    rivals.waits(waiting)
    with rivals.engine.connect() as connection:
        found = candidates(connection)
    assert [(one.process, one.is_active) for one in found] == [(active.pid, True), (waiting.pid, False)]
    seconds = took(rivals, active, lambda pid: os.kill(pid, signal.SIGKILL))
    print(f"taken over {seconds:.1f} s after a kill")  # noqa: T201 - a measurement
    assert waiting.said[-1] == "this daemon is active now (term 2)"
    assert rivals.rows("SELECT term, process FROM falcon.daemon") == [(2, waiting.pid)]


def test_one_that_stood_still_is_replaced_and_does_nothing_when_it_goes_on(rivals: Rivals) -> None:
    rivals.start()
    rivals.start()
    for _ in range(3):
        stopped = rivals.active()
        seconds = took(rivals, stopped, lambda pid: os.kill(pid, signal.SIGSTOP))
        print(f"taken over {seconds:.1f} s after a stop, of {SILENT_SECONDS} s that it may be silent")  # noqa: T201
        before = rivals.rows(f"SELECT count(*) FROM counted WHERE process = {stopped.pid}")
        os.kill(stopped.pid, signal.SIGCONT)
        stopped.process.join(PATIENCE)
        assert stopped.process.exitcode == REPLACED
        assert rivals.rows(f"SELECT count(*) FROM counted WHERE process = {stopped.pid}") == before
        rivals.start()


def test_one_whose_sessions_are_lost_goes_on_if_nobody_has_replaced_it(rivals: Rivals) -> None:
    """As when PostgreSQL is restarted: its runs need not end."""
    active = rivals.start()
    assert rivals.active() is active
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'falcon daemon%'"
    for _ in range(3):
        assert (True,) in rivals.rows(ended)
        assert rivals.active() is active
    lock = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'falcon daemon %'"
    wait_until(lambda: rivals.rows(lock) == [(1,)])
    assert rivals.rows("SELECT count(*) FROM falcon.daemon WHERE process = " + str(active.pid)) == [(1,)]


def test_one_whose_sessions_are_lost_ends_if_another_one_was_there(rivals: Rivals) -> None:
    rivals.start()
    rivals.start()
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'falcon daemon%'"
    terms = [rivals.rows("SELECT term FROM falcon.daemon")[0][0]] if rivals.active() else []
    for _ in range(30):
        active = rivals.active()
        rivals.rows(ended)
        now = rivals.active()
        terms.append(rivals.rows("SELECT term FROM falcon.daemon")[0][0])
        if now is not active:
            active.process.join(PATIENCE)
            assert active.process.exitcode == REPLACED
            break
    # One that is cut off while it begins a term begins another one: terms may be left out, but never come again.
    assert terms == sorted(terms)
    wait_until(lambda: rivals.rows("SELECT process FROM falcon.daemon") == [(rivals.active().pid,)], PATIENCE)
